#include "server/query/read/step_order.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace tacho::server::query {
namespace {

bool Before(const Sample& a, const Sample& b) {
  return std::tie(a.step, a.attempt, a.time_ns) < std::tie(b.step, b.attempt, b.time_ns);
}

absl::Status TooManySamples() {
  return absl::ResourceExhaustedError(
      absl::StrCat("a series has more than ", kMaxSortedSamples,
                   " samples to be ordered by step: give a range of steps or of time, ask for one "
                   "attempt, or use the axis of time"));
}

// What a scan returned: samples in ascending time.
struct Rows {
  storage::SampleView view;
  std::span<const uint32_t> attempts;  // Empty: all are of the view's.

  size_t size() const { return view.size(); }
  Sample At(size_t i) const {
    const storage::SampleColumns& columns = view.columns;
    return {columns.times[i], columns.steps[i], attempts.empty() ? view.attempt : attempts[i],
            columns.values[i]};
  }
};

Rows RowsOf(const storage::SampleBlock& block) {
  Rows rows{.view = {.attempt = block.attempts.front(), .columns = block.columns()}};
  if (LeadingRows(rows.view.attempt, block.attempts) < block.size()) rows.attempts = block.attempts;
  return rows;
}

void Append(const Rows& rows, std::vector<Sample>* samples) {
  for (size_t i = 0; i < rows.size(); ++i) samples->push_back(rows.At(i));
}

// Makes room, at least for twice of what there was: so rows are moved seldom.
void Reserve(size_t size, storage::SampleBlock* block) {
  if (size <= block->times.capacity()) return;
  size = std::max(size, 2 * block->times.capacity());
  block->times.reserve(size);
  block->steps.reserve(size);
  block->attempts.reserve(size);
  block->values.reserve(size);
}

void Resize(size_t size, storage::SampleBlock* block) {
  block->times.resize(size);
  block->steps.resize(size);
  block->attempts.resize(size);
  block->values.resize(size);
}

void Put(const Sample& sample, storage::SampleBlock* to, size_t at) {
  to->times[at] = sample.time_ns;
  to->steps[at] = sample.step;
  to->attempts[at] = sample.attempt;
  to->values[at] = sample.value;
}

// Whether the samples are in the order of Before().
bool AreInOrder(const Rows& rows) {
  const std::span<const int64_t> steps = rows.view.columns.steps;
  // Times ascend: with one attempt, order is that of steps.
  if (rows.attempts.empty()) {
    return rows.view.step_order != storage::StepOrder::kAny ||
           std::is_sorted(steps.begin(), steps.end());
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    if (Before(rows.At(i), rows.At(i - 1))) return false;
  }
  return true;
}

// Copies those rows, of which none comes before the one before it, that are the last of their step
// to places from `at` on. Returns how many.
size_t CopyNewest(const Rows& rows, storage::SampleBlock* to, size_t at) {
  const storage::SampleColumns& from = rows.view.columns;
  size_t next = at;
  const auto copy = [&](size_t row) {
    to->times[next] = from.times[row];
    to->steps[next] = from.steps[row];
    to->values[next] = from.values[row];
    if (!rows.attempts.empty()) to->attempts[next] = rows.attempts[row];
  };
  if (rows.view.step_order == storage::StepOrder::kNeverFall) {
    for (const uint32_t end : rows.view.step_ends) {
      copy(end - rows.view.step_ends_from);
      ++next;
    }
    copy(rows.size() - 1);
    return next + 1 - at;
  }
  // Rows often come faster than steps: no branch guesses well which of them is a new one.
  for (size_t i = 0; i < rows.size(); ++i) {
    next += i == 0 || from.steps[i] == from.steps[i - 1] ? 0 : 1;
    copy(i);
  }
  return next + 1 - at;
}

// Goes on with the rows in the order of Before(): of samples of one step that follow each other
// appends the last. false: that order is not kept, and *all is as it was.
bool AppendNewest(const Rows& rows, storage::SampleBlock* all) {
  if (rows.size() == 0) return true;
  const size_t before = all->size();
  const Sample last = before == 0 ? Sample() : SampleOf(*all, before - 1);
  if (before > 0 && Before(rows.At(0), last)) return false;
  if (!AreInOrder(rows)) return false;
  const bool ends_are_known = rows.view.step_order == storage::StepOrder::kNeverFall;
  Resize(before + (ends_are_known ? rows.view.step_ends.size() + 1 : rows.size()), all);
  const bool replaces = before > 0 && last.step == rows.view.columns.steps.front();
  const size_t at = replaces ? before - 1 : before;
  Resize(at + CopyNewest(rows, all, at), all);
  if (rows.attempts.empty()) {
    std::fill(all->attempts.begin() + static_cast<ptrdiff_t>(at), all->attempts.end(),
              rows.view.attempt);
  }
  return true;
}

void Sort(std::vector<Sample>* samples) {
  if (std::is_sorted(samples->begin(), samples->end(), Before)) return;
  std::sort(samples->begin(), samples->end(), Before);
}

// Takes what a scan returns piece by piece.
class NewestSteps {
 public:
  // Views are held until there are enough of them: then it is known for how many rows to make room.
  void Add(storage::SampleView view) {
    held_rows_ += view.step_ends.empty() ? view.size() : view.step_ends.size() + 1;
    held_.push_back(std::move(view));
    if (held_rows_ >= kHeldRows) AddHeld();
  }
  void Add(const storage::SampleBlock& block) {
    AddHeld();
    Add(RowsOf(block));
  }

  storage::SampleBlock Take() {
    AddHeld();
    if (samples_.empty()) return std::move(newest_);
    Sort(&samples_);
    KeepNewestOfEachStep(&samples_);
    Resize(samples_.size(), &newest_);
    for (size_t i = 0; i < samples_.size(); ++i) Put(samples_[i], &newest_, i);
    return std::move(newest_);
  }

 private:
  static constexpr size_t kHeldRows = size_t{64} << 10;

  void AddHeld() {
    if (samples_.empty()) Reserve(newest_.size() + held_rows_, &newest_);
    for (storage::SampleView& view : held_) Add(Rows{std::move(view), {}});
    held_.clear();
    held_rows_ = 0;
  }
  void Add(const Rows& rows) {
    if (samples_.empty()) {
      if (AppendNewest(rows, &newest_)) return;
      for (size_t i = 0; i < newest_.size(); ++i) samples_.push_back(SampleOf(newest_, i));
    }
    Append(rows, &samples_);
  }

  std::vector<storage::SampleView> held_;
  size_t held_rows_ = 0;
  storage::SampleBlock newest_;  // While samples come in order.
  std::vector<Sample> samples_;  // All, once they do not.
};

}  // namespace

absl::StatusOr<std::vector<Sample>> SortedBySteps(SeriesScan* scan) {
  std::vector<Sample> samples;
  storage::SampleBlock block;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(bool more, scan->Next(&block));
    if (!more) break;
    if (samples.size() + block.size() > kMaxSortedSamples) return TooManySamples();
    Append(RowsOf(block), &samples);
  }
  Sort(&samples);
  return samples;
}

absl::StatusOr<storage::SampleBlock> NewestOfEachStep(SeriesScan* scan) {
  NewestSteps steps;
  storage::SampleBlock block;
  for (size_t read = 0;;) {
    storage::SampleView view;
    absl::StatusOr<bool> more = scan->NextView(&view);
    if (!more.ok()) return more.status();
    const bool in_place = *more;
    if (!in_place) more = scan->Next(&block);
    if (!more.ok()) return more.status();
    if (!*more) return steps.Take();
    read += in_place ? view.size() : block.size();
    if (read > kMaxSortedSamples) return TooManySamples();
    if (in_place) {
      steps.Add(std::move(view));
    } else {
      steps.Add(block);
    }
  }
}

void KeepNewestOfEachStep(std::vector<Sample>* samples) {
  size_t kept = 0;
  for (const Sample& sample : *samples) {
    if (kept > 0 && (*samples)[kept - 1].step == sample.step) --kept;
    (*samples)[kept++] = sample;
  }
  samples->resize(kept);
}

}  // namespace tacho::server::query

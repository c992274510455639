#include "server/query/step_order.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server {
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
  storage::SampleColumns columns;
  std::span<const uint32_t> attempts;  // Empty: all are of this one.
  uint32_t attempt = 0;

  size_t size() const { return columns.size(); }
  Sample At(size_t i) const {
    return {columns.times[i], columns.steps[i], attempts.empty() ? attempt : attempts[i],
            columns.values[i]};
  }
};

Rows RowsOf(const storage::SampleBlock& block) {
  const uint32_t attempt = block.attempts.front();
  if (LeadingRows(attempt, block.attempts) == block.size()) return {block.columns(), {}, attempt};
  return {block.columns(), block.attempts, attempt};
}

Rows RowsOf(const storage::SampleView& view) { return {view.columns, {}, view.attempt}; }

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
  // Times ascend: with one attempt, order is that of steps.
  if (rows.attempts.empty())
    return std::is_sorted(rows.columns.steps.begin(), rows.columns.steps.end());
  for (size_t i = 1; i < rows.size(); ++i) {
    if (Before(rows.At(i), rows.At(i - 1))) return false;
  }
  return true;
}

// Goes on with the rows in the order of Before(): of samples of one step that follow each other
// appends the last. false: that order is not kept, and *all is as it was.
bool AppendNewest(const Rows& rows, storage::SampleBlock* all) {
  if (rows.size() == 0) return true;
  const size_t before = all->size();
  const Sample replaced = before == 0 ? Sample() : SampleOf(*all, before - 1);
  if (before > 0 && Before(rows.At(0), replaced)) return false;
  if (!AreInOrder(rows)) return false;
  Resize(before + rows.size(), all);
  const storage::SampleColumns& from = rows.columns;
  const size_t first = before > 0 && replaced.step == from.steps.front() ? before - 1 : before;
  size_t last = first;
  // Rows often come faster than steps: no branch guesses well which of them is a new one.
  for (size_t i = 0; i < rows.size(); ++i) {
    last += i == 0 || from.steps[i] == from.steps[i - 1] ? 0 : 1;
    all->times[last] = from.times[i];
    all->steps[last] = from.steps[i];
    all->values[last] = from.values[i];
    if (!rows.attempts.empty()) all->attempts[last] = rows.attempts[i];
  }
  Resize(last + 1, all);
  if (rows.attempts.empty()) {
    std::fill(all->attempts.begin() + static_cast<ptrdiff_t>(first), all->attempts.end(),
              rows.attempt);
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
    held_rows_ += view.size();
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
    for (const storage::SampleView& view : held_) Add(RowsOf(view));
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
    absl::StatusOr<bool> more = scan->Next(&block);
    if (!more.ok()) return more.status();
    if (!*more) break;
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

}  // namespace tacho::server

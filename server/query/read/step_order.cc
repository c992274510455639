// Storage returns samples by time. Within an attempt steps mostly rise with time too, so samples
// are copied as long as they come in order, and sorted only once they do not.
#include "server/query/read/step_order.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
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

void Append(const storage::SampleView& rows, std::vector<Sample>* samples) {
  for (size_t i = 0; i < rows.size(); ++i) samples->push_back(SampleOf(rows, i));
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

void Put(const Sample& sample, storage::SampleBlock* to, size_t at) {
  to->times[at] = sample.time_ns;
  to->steps[at] = sample.step;
  to->attempts[at] = sample.attempt;
  to->values[at] = sample.value;
}

// Whether the samples are in the order of Before().
bool AreInOrder(const storage::SampleView& rows) {
  const std::span<const int64_t> steps = rows.columns.steps;
  // Times ascend: with one attempt, order is that of steps.
  if (rows.attempts.empty()) {
    return rows.step_order != storage::StepOrder::kAny ||
           std::is_sorted(steps.begin(), steps.end());
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    if (Before(SampleOf(rows, i), SampleOf(rows, i - 1))) return false;
  }
  return true;
}

// Copies those rows, of which none comes before the one before it, that are the last of their step
// to places from `at` on. Returns how many.
size_t CopyNewest(const storage::SampleView& rows, storage::SampleBlock* to, size_t at) {
  const storage::SampleColumns& from = rows.columns;
  size_t next = at;
  const auto copy = [&](size_t row) {
    to->times[next] = from.times[row];
    to->steps[next] = from.steps[row];
    to->values[next] = from.values[row];
    if (!rows.attempts.empty()) to->attempts[next] = rows.attempts[row];
  };
  if (rows.step_order == storage::StepOrder::kNeverFall) {
    TACHO_CHECK(rows.step_ends.empty() ||
                (rows.step_ends.front() >= rows.step_ends_from &&
                 rows.step_ends.back() - rows.step_ends_from < rows.size()));
    for (const uint32_t end : rows.step_ends) {
      copy(end - rows.step_ends_from);
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
bool AppendNewest(const storage::SampleView& rows, storage::SampleBlock* all) {
  if (rows.size() == 0) return true;
  const size_t before = all->size();
  const Sample last = before == 0 ? Sample() : SampleOf(*all, before - 1);
  if (before > 0 && Before(SampleOf(rows, 0), last)) return false;
  if (!AreInOrder(rows)) return false;
  const bool ends_are_known = rows.step_order == storage::StepOrder::kNeverFall;
  all->resize(before + (ends_are_known ? rows.step_ends.size() + 1 : rows.size()));
  const bool replaces = before > 0 && last.step == rows.columns.steps.front();
  const size_t at = replaces ? before - 1 : before;
  all->resize(at + CopyNewest(rows, all, at));
  if (rows.attempts.empty()) {
    std::fill(all->attempts.begin() + static_cast<ptrdiff_t>(at), all->attempts.end(),
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
  // Views of samples that stay where they are are held until there are enough of them: then it is
  // known for how many rows to make room.
  void Add(storage::SampleView view) {
    if (view.owner == nullptr) {
      AddHeld();
      AddNow(view);
      return;
    }
    held_rows_ += view.step_ends.empty() ? view.size() : view.step_ends.size() + 1;
    held_.push_back(std::move(view));
    if (held_rows_ >= kHeldRows) AddHeld();
  }

  storage::SampleBlock Take() {
    AddHeld();
    if (samples_.empty()) return std::move(newest_);
    Sort(&samples_);
    KeepNewestOfEachStep(&samples_);
    newest_.resize(samples_.size());
    for (size_t i = 0; i < samples_.size(); ++i) Put(samples_[i], &newest_, i);
    return std::move(newest_);
  }

 private:
  static constexpr size_t kHeldRows = size_t{64} << 10;

  void AddHeld() {
    if (samples_.empty()) Reserve(newest_.size() + held_rows_, &newest_);
    for (const storage::SampleView& view : held_) AddNow(view);
    held_.clear();
    held_rows_ = 0;
  }
  void AddNow(const storage::SampleView& rows) {
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
  storage::Chunk chunk;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, scan->Next({}, &chunk));
    if (!more) break;
    if (samples.size() + chunk.samples().size() > kMaxSortedSamples) return TooManySamples();
    Append(chunk.samples(), &samples);
  }
  Sort(&samples);
  return samples;
}

absl::StatusOr<storage::SampleBlock> NewestOfEachStep(SeriesScan* scan) {
  NewestSteps steps;
  storage::Chunk chunk;
  for (size_t read = 0;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, scan->Next({}, &chunk));
    if (!more) return steps.Take();
    read += chunk.samples().size();
    if (read > kMaxSortedSamples) return TooManySamples();
    steps.Add(chunk.samples());
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

#include "server/query/step_order.h"

#include <algorithm>
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

void Append(const storage::SampleBlock& block, std::vector<Sample>* samples) {
  for (size_t i = 0; i < block.size(); ++i) samples->push_back(SampleOf(block, i));
}

void Resize(size_t size, storage::SampleBlock* block) {
  block->times.resize(size);
  block->steps.resize(size);
  block->attempts.resize(size);
  block->values.resize(size);
}

void Copy(const storage::SampleBlock& from, size_t i, storage::SampleBlock* to, size_t at) {
  to->times[at] = from.times[i];
  to->steps[at] = from.steps[i];
  to->attempts[at] = from.attempts[i];
  to->values[at] = from.values[i];
}

// Of samples of one step that follow each other appends the last.
void AppendNewest(const storage::SampleBlock& block, storage::SampleBlock* all) {
  if (block.size() == 0) return;
  size_t last = all->size();  // Where the next goes, unless it is of the step before.
  Resize(last + block.size(), all);
  if (last > 0 && all->steps[last - 1] == block.steps.front()) --last;
  Copy(block, 0, all, last);
  // Rows often come faster than steps: no branch guesses well which of them is a new one.
  for (size_t i = 1; i < block.size(); ++i) {
    last += block.steps[i] == block.steps[i - 1] ? 0 : 1;
    Copy(block, i, all, last);
  }
  Resize(last + 1, all);
}

// Whether the block goes on in the order of Before() from the last of `all`.
bool GoesOn(const storage::SampleBlock& all, const storage::SampleBlock& block) {
  if (all.size() > 0 && Before(SampleOf(block, 0), SampleOf(all, all.size() - 1))) return false;
  size_t falls = 0;  // Counted without a branch, which is several samples an instruction.
  size_t others = 0;
  for (size_t i = 1; i < block.size(); ++i) {
    falls += block.steps[i] < block.steps[i - 1] ? 1 : 0;
    others += block.attempts[i] != block.attempts[0] ? 1 : 0;
  }
  if (falls > 0) return false;
  if (others == 0) return true;  // Times ascend.
  for (size_t i = 1; i < block.size(); ++i) {
    if (block.steps[i] > block.steps[i - 1]) continue;
    if (Before(SampleOf(block, i), SampleOf(block, i - 1))) return false;
  }
  return true;
}

void Sort(std::vector<Sample>* samples) {
  if (std::is_sorted(samples->begin(), samples->end(), Before)) return;
  std::sort(samples->begin(), samples->end(), Before);
}

}  // namespace

absl::StatusOr<std::vector<Sample>> SortedBySteps(SeriesScan* scan) {
  std::vector<Sample> samples;
  storage::SampleBlock block;
  for (;;) {
    absl::StatusOr<bool> more = scan->Next(&block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (samples.size() + block.size() > kMaxSortedSamples) return TooManySamples();
    Append(block, &samples);
  }
  Sort(&samples);
  return samples;
}

absl::StatusOr<storage::SampleBlock> NewestOfEachStep(SeriesScan* scan) {
  storage::SampleBlock newest;  // While samples come in order.
  std::vector<Sample> samples;  // All, once they do not.
  storage::SampleBlock block;
  for (size_t read = 0;;) {
    absl::StatusOr<bool> more = scan->Next(&block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    read += block.size();
    if (read > kMaxSortedSamples) return TooManySamples();
    if (samples.empty() && GoesOn(newest, block)) {
      AppendNewest(block, &newest);
      continue;
    }
    if (samples.empty()) Append(newest, &samples);
    Append(block, &samples);
  }
  if (samples.empty()) return newest;
  Sort(&samples);
  KeepNewestOfEachStep(&samples);
  newest.clear();
  for (const Sample& sample : samples) {
    newest.times.push_back(sample.time_ns);
    newest.steps.push_back(sample.step);
    newest.attempts.push_back(sample.attempt);
    newest.values.push_back(sample.value);
  }
  return newest;
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

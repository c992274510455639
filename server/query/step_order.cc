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

void Put(const Sample& sample, storage::SampleBlock* to, size_t at) {
  to->times[at] = sample.time_ns;
  to->steps[at] = sample.step;
  to->attempts[at] = sample.attempt;
  to->values[at] = sample.value;
}

// Whether the samples are in the order of Before().
bool AreInOrder(const storage::SampleBlock& block) {
  for (size_t i = 1; i < block.size(); ++i) {
    if (Before(SampleOf(block, i), SampleOf(block, i - 1))) return false;
  }
  return true;
}

bool HasOneAttempt(const storage::SampleBlock& block) {
  return LeadingRows(block.attempts.front(), block.attempts) == block.size();
}

// Goes on with the block in the order of Before(): of samples of one step that follow each other
// appends the last. false: that order is not kept, and *all is as it was.
bool AppendNewest(const storage::SampleBlock& block, storage::SampleBlock* all) {
  if (block.size() == 0) return true;
  const size_t before = all->size();
  const Sample replaced = before == 0 ? Sample() : SampleOf(*all, before - 1);
  if (before > 0 && Before(SampleOf(block, 0), replaced)) return false;
  // Times ascend: with one attempt, order is that of steps.
  if (!HasOneAttempt(block) && !AreInOrder(block)) return false;
  Resize(before + block.size(), all);
  size_t last = before > 0 && replaced.step == block.steps.front() ? before - 1 : before;
  Copy(block, 0, all, last);
  // Rows often come faster than steps: no branch guesses well which of them is a new one.
  size_t falls = 0;
  for (size_t i = 1; i < block.size(); ++i) {
    falls += block.steps[i] < block.steps[i - 1] ? 1 : 0;
    last += block.steps[i] == block.steps[i - 1] ? 0 : 1;
    Copy(block, i, all, last);
  }
  if (falls == 0) {
    Resize(last + 1, all);
    return true;
  }
  Resize(before, all);
  if (before > 0) Put(replaced, all, before - 1);
  return false;
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
    if (samples.empty() && AppendNewest(block, &newest)) continue;
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

#include "server/query/step_order.h"

#include <algorithm>
#include <tuple>

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

}  // namespace

absl::StatusOr<std::vector<Sample>> SortedBySteps(SeriesScan* scan) {
  std::vector<Sample> samples;
  storage::SampleBlock block;
  for (;;) {
    absl::StatusOr<bool> more = scan->Next(&block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (samples.size() + block.size() > kMaxSortedSamples) return TooManySamples();
    for (size_t i = 0; i < block.size(); ++i) {
      samples.push_back({block.times[i], block.steps[i], block.attempts[i], block.values[i]});
    }
  }
  if (!std::is_sorted(samples.begin(), samples.end(), Before)) {
    std::sort(samples.begin(), samples.end(), Before);
  }
  return samples;
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

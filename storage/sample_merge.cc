#include "storage/sample_merge.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace tacho::storage {
namespace {

struct Ref {
  int64_t time;
  uint32_t attempt;
  int64_t step;
  FramePosition position;
  size_t row;
  double value;
};

bool Wanted(const SampleBlock& samples, size_t i, const ReadOptions& options) {
  if (std::bit_cast<uint64_t>(samples.values[i]) == kStaleMarkerBits) return false;
  const int64_t time = samples.times[i];
  if (time < options.begin_ns) return false;
  if (time >= options.end_ns && options.end_ns != INT64_MAX) return false;
  if (options.attempt && samples.attempts[i] != *options.attempt) return false;
  const int64_t step = samples.steps[i];
  if ((options.first_step || options.last_step) && step == kNoStep) return false;
  if (options.first_step && step < *options.first_step) return false;
  return !options.last_step || step <= *options.last_step;
}

}  // namespace

SampleBlock MergeSamples(const std::vector<MergeInput>& inputs, const ReadOptions& options) {
  std::vector<Ref> refs;
  for (const MergeInput& input : inputs) {
    const SampleBlock& samples = input.samples;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (!Wanted(samples, i, options)) continue;
      refs.push_back({samples.times[i], samples.attempts[i], samples.steps[i], input.position, i,
                      samples.values[i]});
    }
  }
  const auto identity = [](const Ref& r) { return std::tie(r.time, r.attempt, r.step); };
  const auto order = [](const Ref& a, const Ref& b) {
    return std::tie(a.time, a.attempt, a.step, a.position, a.row) <
           std::tie(b.time, b.attempt, b.step, b.position, b.row);
  };
  if (!std::is_sorted(refs.begin(), refs.end(), order)) std::sort(refs.begin(), refs.end(), order);
  SampleBlock out;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (i + 1 < refs.size() && identity(refs[i]) == identity(refs[i + 1])) continue;
    out.times.push_back(refs[i].time);
    out.attempts.push_back(refs[i].attempt);
    out.steps.push_back(refs[i].step);
    out.values.push_back(refs[i].value);
  }
  return out;
}

void SampleBlock::clear() {
  times.clear();
  steps.clear();
  attempts.clear();
  values.clear();
}

}  // namespace tacho::storage

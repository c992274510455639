#include "storage/head/head_column.h"

#include <cstddef>

namespace tacho::storage {
namespace {

// Behind what is in *out.
void AppendBlock(const RowBlock& block, size_t column, uint32_t attempt, SampleBlock* out) {
  const size_t before = out->size();
  block.AppendTimes(&out->times);
  block.AppendSteps(&out->steps);
  out->steps.resize(before + block.rows(), kNoStep);
  out->attempts.resize(before + block.rows(), attempt);
  out->values.resize(before + block.rows());
  block.CopyColumns(column, 1, out->values.data() + before, block.rows());
}

void AppendSamples(const SampleBlock& from, SampleBlock* out) {
  out->times.insert(out->times.end(), from.times.begin(), from.times.end());
  out->steps.insert(out->steps.end(), from.steps.begin(), from.steps.end());
  out->attempts.insert(out->attempts.end(), from.attempts.begin(), from.attempts.end());
  out->values.insert(out->values.end(), from.values.begin(), from.values.end());
}

void KeepTimes(int64_t begin_ns, int64_t end_ns, SampleBlock* samples) {
  size_t kept = 0;
  for (size_t i = 0; i < samples->size(); ++i) {
    const int64_t time = samples->times[i];
    if (time < begin_ns || (time >= end_ns && end_ns != INT64_MAX)) continue;
    samples->times[kept] = time;
    samples->steps[kept] = samples->steps[i];
    samples->attempts[kept] = samples->attempts[i];
    samples->values[kept] = samples->values[i];
    ++kept;
  }
  samples->times.resize(kept);
  samples->steps.resize(kept);
  samples->attempts.resize(kept);
  samples->values.resize(kept);
}

}  // namespace

SampleBlock HeadColumn::Decode(int64_t begin_ns, int64_t end_ns) const {
  SampleBlock out;
  const auto wanted = [&](int64_t first, int64_t last) {
    return last >= begin_ns && (first < end_ns || end_ns == INT64_MAX);
  };
  if (!wanted(first_time_ns, last_time_ns)) return out;
  for (const RowBlockPtr& block : blocks) {
    if (!wanted(block->first_time_ns(), block->last_time_ns())) continue;
    AppendBlock(*block, column, attempt, &out);
  }
  AppendSamples(tail, &out);
  if (first_time_ns < begin_ns || last_time_ns >= end_ns) KeepTimes(begin_ns, end_ns, &out);
  return out;
}

}  // namespace tacho::storage

#include "server/query/range/pieces.h"

#include <algorithm>

#include "proto/base/check.h"

namespace tacho::server::query {
namespace {

bool HasStep(int64_t step) { return step != storage::kNoStep; }

}  // namespace

void FillPoints(const storage::SampleView& view, size_t begin, size_t end, v1::Points* points) {
  TACHO_CHECK(begin <= end && end <= view.size());
  const storage::SampleColumns columns = view.columns.Rows(begin, end);
  points->mutable_times_unix_ns()->Add(columns.times.begin(), columns.times.end());
  points->mutable_values()->Add(columns.values.begin(), columns.values.end());
  if (std::any_of(columns.steps.begin(), columns.steps.end(), HasStep)) {
    points->mutable_steps()->Add(columns.steps.begin(), columns.steps.end());
  }
  if (view.attempts.empty()) {
    if (view.attempt == 0) return;
    points->mutable_attempts()->Resize(static_cast<int>(end - begin), view.attempt);
    return;
  }
  const auto attempts = view.attempts.subspan(begin, end - begin);
  if (std::any_of(attempts.begin(), attempts.end(), [](uint32_t one) { return one != 0; })) {
    points->mutable_attempts()->Add(attempts.begin(), attempts.end());
  }
}

void FillPoints(const storage::SampleBlock& block, v1::Points* points) {
  const storage::SampleView view = {.attempts = block.attempts, .columns = block.columns()};
  FillPoints(view, 0, view.size(), points);
}

void FillPoints(std::span<const Sample> samples, v1::Points* points) {
  storage::SampleBlock block;
  for (const Sample& sample : samples) {
    block.times.push_back(sample.time_ns);
    block.steps.push_back(sample.step);
    block.attempts.push_back(sample.attempt);
    block.values.push_back(sample.value);
  }
  FillPoints(block, points);
}

void FillBuckets(std::span<const Bucket> buckets, const BucketValues& values, v1::Buckets* proto) {
  const bool steps = std::any_of(buckets.begin(), buckets.end(), [](const Bucket& bucket) {
    return HasStep(bucket.first_step) || HasStep(bucket.last_step);
  });
  const auto size = static_cast<int>(buckets.size());
  // Where the entries of a column go; null where it is not wanted.
  const auto extend = [size](bool wanted, auto* column) {
    if (wanted) column->Reserve(column->size() + size);
    return wanted ? column->AddNAlreadyReserved(size) : nullptr;
  };
  int64_t* const first_times = extend(true, proto->mutable_first_times_unix_ns());
  int64_t* const last_times = extend(true, proto->mutable_last_times_unix_ns());
  int64_t* const first_steps = extend(steps, proto->mutable_first_steps());
  int64_t* const last_steps = extend(steps, proto->mutable_last_steps());
  uint64_t* const counts = extend(true, proto->mutable_counts());
  uint64_t* const non_finite = extend(true, proto->mutable_non_finite());
  double* const min = extend(values.Has(v1::BUCKET_VALUE_MIN), proto->mutable_min());
  double* const max = extend(values.Has(v1::BUCKET_VALUE_MAX), proto->mutable_max());
  double* const avg = extend(values.Has(v1::BUCKET_VALUE_AVG), proto->mutable_avg());
  double* const first = extend(values.Has(v1::BUCKET_VALUE_FIRST), proto->mutable_first());
  double* const last = extend(values.Has(v1::BUCKET_VALUE_LAST), proto->mutable_last());
  double* const sum = extend(values.Has(v1::BUCKET_VALUE_SUM), proto->mutable_sum());
  // One walk over the buckets, which are larger than all that is taken from them.
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    first_times[i] = bucket.first_time_ns;
    last_times[i] = bucket.last_time_ns;
    counts[i] = bucket.count;
    non_finite[i] = bucket.non_finite;
    if (first_steps != nullptr) first_steps[i] = bucket.first_step;
    if (last_steps != nullptr) last_steps[i] = bucket.last_step;
    if (min != nullptr) min[i] = bucket.min;
    if (max != nullptr) max[i] = bucket.max;
    if (avg != nullptr) avg[i] = bucket.Average();
    if (first != nullptr) first[i] = bucket.first;
    if (last != nullptr) last[i] = bucket.last;
    if (sum != nullptr) sum[i] = static_cast<double>(bucket.sum);
  }
}

}  // namespace tacho::server::query

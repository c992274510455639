#include "server/query/pieces.h"

#include <algorithm>
#include <cmath>

namespace tacho::server {
namespace {

bool HasStep(int64_t step) { return step != storage::kNoStep; }

}  // namespace

void FillPoints(const storage::SampleBlock& block, size_t begin, size_t end, v1::Points* points) {
  const auto from = static_cast<ptrdiff_t>(begin);
  const auto to = static_cast<ptrdiff_t>(end);
  points->mutable_times_unix_ns()->Add(block.times.begin() + from, block.times.begin() + to);
  points->mutable_values()->Add(block.values.begin() + from, block.values.begin() + to);
  if (std::any_of(block.steps.begin() + from, block.steps.begin() + to, HasStep)) {
    points->mutable_steps()->Add(block.steps.begin() + from, block.steps.begin() + to);
  }
  if (std::any_of(block.attempts.begin() + from, block.attempts.begin() + to,
                  [](uint32_t attempt) { return attempt != 0; })) {
    points->mutable_attempts()->Add(block.attempts.begin() + from, block.attempts.begin() + to);
  }
}

void FillPoints(std::span<const Sample> samples, v1::Points* points) {
  storage::SampleBlock block;
  for (const Sample& sample : samples) {
    block.times.push_back(sample.time_ns);
    block.steps.push_back(sample.step);
    block.attempts.push_back(sample.attempt);
    block.values.push_back(sample.value);
  }
  FillPoints(block, 0, block.size(), points);
}

void FillBuckets(std::span<const Bucket> buckets, const BucketValues& values, v1::Buckets* proto) {
  const bool steps = std::any_of(buckets.begin(), buckets.end(), [](const Bucket& bucket) {
    return HasStep(bucket.first_step) || HasStep(bucket.last_step);
  });
  // A column at a time: the loops stay small, and a column that is not wanted costs nothing.
  const auto fill = [&buckets](auto* column, const auto& value_of) {
    column->Reserve(column->size() + static_cast<int>(buckets.size()));
    for (const Bucket& bucket : buckets) column->AddAlreadyReserved(value_of(bucket));
  };
  const auto fill_if = [&](v1::BucketValue value, auto* column, const auto& value_of) {
    if (values.Has(value)) fill(column, value_of);
  };
  using B = const Bucket&;
  fill(proto->mutable_first_times_unix_ns(), [](B bucket) { return bucket.first_time_ns; });
  fill(proto->mutable_last_times_unix_ns(), [](B bucket) { return bucket.last_time_ns; });
  if (steps) {
    fill(proto->mutable_first_steps(), [](B bucket) { return bucket.first_step; });
    fill(proto->mutable_last_steps(), [](B bucket) { return bucket.last_step; });
  }
  fill(proto->mutable_counts(), [](B bucket) { return bucket.count; });
  fill(proto->mutable_non_finite(), [](B bucket) { return bucket.non_finite; });
  fill_if(v1::BUCKET_VALUE_MIN, proto->mutable_min(), [](B bucket) { return bucket.min; });
  fill_if(v1::BUCKET_VALUE_MAX, proto->mutable_max(), [](B bucket) { return bucket.max; });
  fill_if(v1::BUCKET_VALUE_AVG, proto->mutable_avg(), [](B bucket) { return bucket.Average(); });
  fill_if(v1::BUCKET_VALUE_FIRST, proto->mutable_first(), [](B bucket) { return bucket.first; });
  fill_if(v1::BUCKET_VALUE_LAST, proto->mutable_last(), [](B bucket) { return bucket.last; });
  fill_if(v1::BUCKET_VALUE_SUM, proto->mutable_sum(),
          [](B bucket) { return static_cast<double>(bucket.sum); });
}

}  // namespace tacho::server

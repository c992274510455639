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

void FillBuckets(std::span<const Bucket> buckets, v1::Buckets* proto) {
  const bool steps = std::any_of(buckets.begin(), buckets.end(), [](const Bucket& bucket) {
    return HasStep(bucket.first_step) || HasStep(bucket.last_step);
  });
  const int count = static_cast<int>(buckets.size());
  proto->mutable_first_times_unix_ns()->Reserve(count);
  proto->mutable_last_times_unix_ns()->Reserve(count);
  for (auto* field : {proto->mutable_min(), proto->mutable_max(), proto->mutable_avg(),
                      proto->mutable_first(), proto->mutable_last(), proto->mutable_sum()}) {
    field->Reserve(count);
  }
  proto->mutable_counts()->Reserve(count);
  proto->mutable_non_finite()->Reserve(count);
  for (const Bucket& bucket : buckets) {
    proto->add_first_times_unix_ns(bucket.first_time_ns);
    proto->add_last_times_unix_ns(bucket.last_time_ns);
    if (steps) proto->add_first_steps(bucket.first_step);
    if (steps) proto->add_last_steps(bucket.last_step);
    proto->add_min(bucket.min);
    proto->add_max(bucket.max);
    proto->add_avg(bucket.Average());
    proto->add_first(bucket.first);
    proto->add_last(bucket.last);
    proto->add_counts(bucket.count);
    proto->add_non_finite(bucket.non_finite);
    proto->add_sum(static_cast<double>(bucket.sum));
  }
}

}  // namespace tacho::server

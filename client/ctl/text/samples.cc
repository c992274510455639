#include "client/ctl/text/samples.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tacho::ctl {
namespace {

// How "no step" is written among rows that have one.
constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

template <typename Steps>
std::optional<int64_t> StepAt(const Steps& steps, int index) {
  if (steps.empty() || steps.Get(index) == kNoStep) return std::nullopt;
  return steps.Get(index);
}

bool AllOf(int size, std::initializer_list<int> sizes) {
  for (const int other : sizes) {
    if (other != size) return false;
  }
  return true;
}

bool GoodPoints(const v1::Points& points) {
  const int size = points.times_unix_ns_size();
  return points.values_size() == size && (points.steps().empty() || points.steps_size() == size) &&
         (points.attempts().empty() || points.attempts_size() == size);
}

bool GoodBuckets(const v1::Buckets& buckets) {
  const int size = buckets.first_times_unix_ns_size();
  const bool steps_fit = (buckets.first_steps().empty() && buckets.last_steps().empty()) ||
                         AllOf(size, {buckets.first_steps_size(), buckets.last_steps_size()});
  return steps_fit &&
         AllOf(size, {buckets.last_times_unix_ns_size(), buckets.min_size(), buckets.max_size(),
                      buckets.avg_size(), buckets.first_size(), buckets.last_size(),
                      buckets.counts_size(), buckets.non_finite_size()});
}

}  // namespace

absl::Status CheckColumns(const v1::RangeResponse& response) {
  if (GoodPoints(response.points()) && GoodBuckets(response.buckets())) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the collector sent columns of different lengths for series ",
                   response.series_index(), "; is it of another version?"));
}

Point PointAt(const v1::Points& points, int index) {
  return {.time_unix_ns = points.times_unix_ns(index),
          .step = StepAt(points.steps(), index),
          .value = points.values(index),
          .attempt = points.attempts().empty() ? 0 : points.attempts(index)};
}

Bucket BucketAt(const v1::Buckets& buckets, int index) {
  return {.first_time_unix_ns = buckets.first_times_unix_ns(index),
          .last_time_unix_ns = buckets.last_times_unix_ns(index),
          .first_step = StepAt(buckets.first_steps(), index),
          .last_step = StepAt(buckets.last_steps(), index),
          .min = buckets.min(index),
          .max = buckets.max(index),
          .avg = buckets.avg(index),
          .first = buckets.first(index),
          .last = buckets.last(index),
          .count = buckets.counts(index),
          .non_finite = buckets.non_finite(index)};
}

Bucket BucketOf(const Point& point) {
  const bool finite = std::isfinite(point.value);
  const double statistic = finite ? point.value : std::numeric_limits<double>::quiet_NaN();
  return {.first_time_unix_ns = point.time_unix_ns,
          .last_time_unix_ns = point.time_unix_ns,
          .first_step = point.step,
          .last_step = point.step,
          .min = statistic,
          .max = statistic,
          .avg = statistic,
          .first = point.value,
          .last = point.value,
          .count = 1,
          .non_finite = finite ? 0U : 1U};
}

}  // namespace tacho::ctl

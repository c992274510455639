// The columns of a RangeResponse, row by row.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct Point {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  double value = 0;
  uint32_t attempt = 0;
};

struct Bucket {
  int64_t first_time_unix_ns = 0;
  int64_t last_time_unix_ns = 0;
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  double min = 0;
  double max = 0;
  double avg = 0;
  double first = 0;
  double last = 0;
  uint64_t count = 0;
  uint64_t non_finite = 0;
};

// The collector is believed about values, not about shapes: every column must have as many entries
// as the first one, or none where it may be left out.
//   INTERNAL  a column has another length; PointAt and BucketAt must not be called.
absl::Status CheckColumns(const v1::RangeResponse& response);

// `index` is below times_unix_ns_size() or first_times_unix_ns_size().
Point PointAt(const v1::Points& points, int index);
Bucket BucketAt(const v1::Buckets& buckets, int index);

// A bucket that holds this one sample.
Bucket BucketOf(const Point& point);

}  // namespace tacho::ctl

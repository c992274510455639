// The columns of a RangeResponse, row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// Checks the shape of an answer: every column must have as many entries as the first one, or none
// where it may be absent. Values are not checked.
//   INTERNAL  a column has another length; PointAt and BucketAt must not be called.
absl::Status CheckColumns(const v1::RangeResponse& response);

// `index` is below times_unix_ns_size() or first_times_unix_ns_size().
Point PointAt(const v1::Points& points, int index);
Bucket BucketAt(const v1::Buckets& buckets, int index);

// A bucket that holds this one sample.
Bucket BucketOf(const Point& point);

// All labels except the job, in a fixed order: task, host, then the series' own.
std::vector<std::pair<std::string, std::string>> LabelsOf(const v1::SeriesInfo& series);

// The series' own labels: neither job, task nor host.
std::vector<std::pair<std::string, std::string>> OwnLabelPairs(const v1::SeriesInfo& series);
// The same as "chip=0,device=sda"; "" if it has none.
std::string OwnLabels(const v1::SeriesInfo& series);

// 'loss{task="0",host="a"}'.
std::string FullName(const v1::SeriesInfo& series);

// The shortest names that tell the series of an answer apart: "loss", "task 3", "loss task 3
// chip 0".
std::vector<std::string> ShortNames(const std::vector<const v1::SeriesInfo*>& series);

// "gauge", "counter" or "histogram"; "" if the type is not known.
std::string TypeName(v1::MetricType type);

}  // namespace tacho::ctl

// Reads curves of metrics from the collector.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/call/query_client.h"
#include "client/ctl/text/plot_axis.h"
#include "client/ctl/text/samples.h"

namespace tacho::ctl {

struct MetricCurve {
  v1::Metric metric;
  std::string group;  // "task 0": values of the labels to group by; "" without any.
  size_t series = 0;  // How many series it combines.
  std::vector<CurvePoint> points;
  // The average of the last samples of those series that reach to the end: by step to the last
  // step, by time into the last two-hundredth. It does not depend on the number of points.
  double last = kNotANumber;
};

// Folds the buckets and points of a Range answer into curves. Not thread-safe.
class CurveFolder {
 public:
  // Curves have at most `points` places. All series of a metric are folded into one curve, or into
  // one for each combination of values of the labels `group_by`.
  CurveFolder(bool by_step, size_t points, std::vector<std::string> group_by)
      : by_step_(by_step), points_(points), group_by_(std::move(group_by)) {}

  //   INTERNAL  the answer does not fit together.
  absl::Status Add(const v1::RangeResponse& response);

  // By metric, then in the order in which groups came. By step, rows without a step are left out.
  std::vector<MetricCurve> Finish() &&;

 private:
  // The contribution of one bucket to its place.
  struct Piece {
    double x = 0;
    double low = 0;
    double high = 0;
    double sum = 0;  // The sum of `count - non_finite` values.
    uint64_t count = 0;
    uint64_t non_finite = 0;
  };
  // Where a series begins and ends, and its last value.
  struct Reach {
    double first = 0;
    double last = 0;
    double value = kNotANumber;
  };
  struct Folded {
    MetricCurve curve;
    std::vector<Piece> pieces;
    std::vector<Reach> reaches;  // How far series with a place reach.
  };
  void AddBucket(const Bucket& bucket);
  double LastOf(const std::vector<Reach>& reaches) const;
  std::vector<CurvePoint> Fold(std::vector<Piece> pieces) const;
  std::string GroupOf(const v1::SeriesInfo& series) const;

  const bool by_step_;
  const size_t points_;
  const std::vector<std::string> group_by_;
  std::vector<Folded> folded_;
  std::map<std::pair<std::string, std::string>, size_t> index_;  // By metric and group.
  size_t current_ = 0;
  bool begins_ = false;  // The next bucket is the first of its series.
};

// Sets the request's max_points so that `points` places result.
//   as QueryClient::Range
absl::StatusOr<std::vector<MetricCurve>> ReadCurves(QueryClient& client, v1::RangeRequest request,
                                                    size_t points,
                                                    const std::vector<std::string>& group_by);

}  // namespace tacho::ctl

// One subject of a comparison: its series, and their values along the axis.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/read/query_control.h"
#include "server/query/read/reduce.h"
#include "server/query/read/series_scan.h"
#include "storage/store.h"

namespace tacho::server::query {

// One thread at a time. Store, plan and control must outlive it.
class ComparedSubject {
 public:
  // Finds the series, at most `max_series`.
  //   NOT_FOUND           no such job or attempt; the text names those that exist.
  //   RESOURCE_EXHAUSTED  more series match.
  static absl::StatusOr<ComparedSubject> Create(const storage::Store& store,
                                                const ComparePlan& plan, size_t index,
                                                uint64_t max_series, const QueryControl& control);

  using SeriesList = std::vector<storage::SeriesPtr>;
  // By metric, ascending.
  const std::vector<std::pair<std::string, SeriesList>>& metrics() const { return metrics_; }
  size_t series() const { return series_; }
  // The series of a metric; null if the subject has none.
  const SeriesList* Find(const std::string& metric) const;

  // Attributes of the latest of its attempts.
  const std::map<std::string, std::string>& attributes() const { return attributes_; }

  // --- By time since the beginning: call FindOrigin() first ------------------------------------
  absl::Status FindOrigin(const std::vector<std::string>& metrics);
  // Extends *extent to the samples of the series, ns since the origin.
  absl::Status IncludeExtent(const SeriesList& series, AxisExtent* extent);
  // Positions are indexes of the grid. `figures` may be null; else what the samples come to is
  // added, with ends that depend on the grid: a series takes part in an end if it reaches into the
  // first or the last bucket of the subject.
  absl::StatusOr<ComparedPlaces> PlacesByTime(const SeriesList& series, const BucketGrid& grid,
                                              ComparedFigures* figures);

  // --- By step ---------------------------------------------------------------------------------
  // Adds what the samples come to.
  absl::StatusOr<ComparedPlaces> PlacesByStep(const SeriesList& series, ComparedFigures* figures);

  // Sets the growth of counters, which is read along time.
  absl::Status AddGrowth(const SeriesList& series, ComparedFigures* figures) const;

  // Describes what was compared so far.
  void Describe(v1::ComparedSubject* proto) const;

 private:
  ComparedSubject(const ComparePlan& plan, const QueryControl& control)
      : plan_(&plan), control_(&control) {}

  absl::Status Select(const storage::Store& store, const ComparedSelection& subject);
  SeriesScan Scan(const storage::SeriesPtr& series) const;
  // Adds samples to what Describe() reports. Steps ascend.
  void Include(const storage::SampleBlock& samples);
  // The buckets of one series along the time since the origin.
  absl::StatusOr<std::vector<Bucket>> BucketsOf(const storage::SeriesPtr& series,
                                                const BucketGrid& grid) const;

  const ComparePlan* plan_;
  const QueryControl* control_;
  Selection selection_;
  std::unique_ptr<storage::JobView> view_;
  std::vector<std::pair<std::string, SeriesList>> metrics_;
  size_t series_ = 0;
  std::map<std::string, std::string> attributes_;
  int64_t origin_ns_ = 0;
  std::set<uint32_t> attempts_;
  storage::Extent extent_;
};

}  // namespace tacho::server::query

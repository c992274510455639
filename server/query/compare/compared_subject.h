// A subject of a comparison that this collector keeps: its series, and their values along the axis.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/compare/subject_source.h"
#include "server/query/read/query_control.h"
#include "server/query/read/reduce.h"
#include "server/query/read/series_scan.h"
#include "storage/store.h"

namespace tacho::server::query {

// One thread at a time. Store, plan and control must outlive it.
class ComparedSubject final : public SubjectSource {
 public:
  // Finds the series, at most `max_series`.
  //   NOT_FOUND           no such job or attempt; the text names those that exist.
  //   RESOURCE_EXHAUSTED  more series match.
  static absl::StatusOr<std::unique_ptr<ComparedSubject>> Create(const storage::Store& store,
                                                                 const ComparePlan& plan,
                                                                 size_t index, uint64_t max_series,
                                                                 const QueryControl& control);

  const SubjectFacts& facts() const override { return facts_; }
  absl::Status FindOrigin(const std::vector<std::string>& metrics) override;
  absl::Status IncludeExtent(const std::string& metric, AxisExtent* extent) override;
  absl::StatusOr<ComparedPlaces> PlacesByTime(const std::string& metric, const TimeGrid& grid,
                                              bool growth, ComparedFigures* figures) override;
  absl::StatusOr<ComparedPlaces> PlacesByStep(const std::string& metric, bool growth,
                                              ComparedFigures* figures) override;
  void Describe(v1::ComparedSubject* proto) const override;

  // What FindOrigin() found, ns since the Unix epoch; the highest number if there is no sample.
  int64_t origin_ns() const { return origin_ns_; }
  // Instead of FindOrigin().
  void SetOrigin(int64_t origin_ns) { origin_ns_ = origin_ns; }

 private:
  using SeriesList = std::vector<storage::SeriesPtr>;

  ComparedSubject(const ComparePlan& plan, const QueryControl& control)
      : plan_(&plan), control_(&control) {}

  // The series of a metric; none if the subject does not have it.
  std::span<const storage::SeriesPtr> SeriesOf(const std::string& metric) const;
  absl::Status Select(const storage::Store& store, const ComparedSelection& subject);
  SeriesScan Scan(const storage::SeriesPtr& series) const;
  // Adds samples to what Describe() reports. Steps ascend.
  void Include(const storage::SampleBlock& samples);
  // The buckets of one series along the time since the origin.
  absl::StatusOr<std::vector<Bucket>> BucketsOf(const storage::SeriesPtr& series,
                                                const BucketGrid& grid) const;

  // Sets the growth of counters, which is read along time.
  absl::Status AddGrowth(std::span<const storage::SeriesPtr> series,
                         ComparedFigures* figures) const;

  const ComparePlan* plan_;
  const QueryControl* control_;
  Selection selection_;
  std::unique_ptr<storage::JobView> view_;
  SubjectFacts facts_;
  std::vector<SeriesList> series_;  // In the order of facts_.metrics.
  int64_t origin_ns_ = 0;
  std::set<uint32_t> attempts_;
  storage::Extent extent_;
};

}  // namespace tacho::server::query

// Reads series as a Range request asks for them: as they were recorded, or in buckets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/across.h"
#include "server/query/read/query_control.h"
#include "server/query/read/reduce.h"
#include "server/query/read/series_scan.h"
#include "storage/model/series_reader.h"

namespace tacho::server::query {

// One thread at a time. The plan and the control must outlive it.
class RangeReader {
 public:
  RangeReader(const RangePlan& plan, const QueryControl& control,
              std::unique_ptr<storage::ReadView> view);

  // Scans one of the view's series, and only one attempt if that is set. Must not outlive this.
  SeriesScan Scan(const storage::SeriesPtr& series, std::optional<uint32_t> attempt) const;

  // Where its samples lie along the axis.
  absl::StatusOr<AxisExtent> ExtentOf(const storage::SeriesPtr& series,
                                      std::optional<uint32_t> attempt) const;
  // Its buckets in its own extent. It is read again where gaps would take many of them.
  absl::StatusOr<ReducedSeries> Reduce(const storage::SeriesPtr& series,
                                       std::optional<uint32_t> attempt) const;
  // Its buckets in a grid that has all of its samples.
  absl::StatusOr<std::vector<Bucket>> BucketsIn(const storage::SeriesPtr& series,
                                                std::optional<uint32_t> attempt,
                                                const BucketGrid& grid) const;
  // Enters it into a fold with that grid; the axis is time.
  absl::Status FoldInto(const storage::SeriesPtr& series, std::optional<uint32_t> attempt,
                        const BucketGrid& grid, FoldByTime* fold) const;
  // Decodes what the plan, which does not aggregate, needs of it, so that the store keeps that.
  absl::Status Touch(const storage::SeriesPtr& series, std::optional<uint32_t> attempt) const;

  // Columns that had to be decoded so far.
  uint64_t columns_decoded() const { return view_->columns_decoded(); }

 private:
  // As ExtentOf(). `scan` is a new one of the series; along time it only looks ahead.
  absl::StatusOr<AxisExtent> FindExtent(const storage::SeriesPtr& series,
                                        std::optional<uint32_t> attempt, SeriesScan* scan) const;
  absl::StatusOr<std::vector<Bucket>> BucketsOf(SeriesScan* scan, const BucketGrid& grid) const;
  // Along time: summaries that lie in one bucket. Along steps: samples only.
  storage::Want InBuckets(const BucketGrid& grid) const;

  const RangePlan& plan_;
  const QueryControl& control_;
  const std::unique_ptr<storage::ReadView> view_;
};

}  // namespace tacho::server::query

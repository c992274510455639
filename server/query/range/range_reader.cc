#include "server/query/range/range_reader.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::server::query {
namespace {

// Buckets for which room is made at once.
constexpr size_t kUsualPoints = 1024;

}  // namespace

RangeReader::RangeReader(const RangePlan& plan, const QueryControl& control,
                         std::unique_ptr<storage::ReadView> view)
    : plan_(plan), control_(control), view_(std::move(view)) {}

SeriesScan RangeReader::Scan(const storage::SeriesPtr& series,
                             std::optional<uint32_t> attempt) const {
  storage::ReadOptions read = plan_.read;
  if (attempt.has_value()) read.attempt = attempt;
  return SeriesScan(view_->Read(series, read), plan_.selection.attempts, control_, plan_.counter);
}

absl::StatusOr<AxisExtent> RangeReader::ExtentOf(const storage::SeriesPtr& series,
                                                 std::optional<uint32_t> attempt) const {
  SeriesScan scan = Scan(series, attempt);
  return FindExtent(series, attempt, &scan);
}

absl::StatusOr<AxisExtent> RangeReader::FindExtent(const storage::SeriesPtr& series,
                                                   std::optional<uint32_t> attempt,
                                                   SeriesScan* scan) const {
  AxisExtent extent;
  if (plan_.by_step) {
    TACHO_RETURN_IF_ERROR(Scan(series, attempt).ForEach({}, [&extent](const storage::Chunk& chunk) {
      for (const int64_t step : chunk.samples().columns.steps) extent.Include(step);
    }));
    return extent;
  }
  TACHO_ASSIGN_OR_RETURN(const auto known, scan->FindTimes());
  if (known.has_value()) return *known;
  TACHO_RETURN_IF_ERROR(
      Scan(series, attempt).ForEach(storage::AnySummary(), [&extent](const storage::Chunk& chunk) {
        extent.Include(chunk.first_time_ns());
        extent.Include(chunk.last_time_ns());
      }));
  return extent;
}

storage::Want RangeReader::InBuckets(const BucketGrid& grid) const {
  if (plan_.by_step) return {};
  return {.summary = [&grid](const storage::SampleSummary& summary) {
    return grid.IndexOf(summary.first_time_ns) == grid.IndexOf(summary.last_time_ns);
  }};
}

absl::StatusOr<ReducedSeries> RangeReader::Reduce(const storage::SeriesPtr& series,
                                                  std::optional<uint32_t> attempt) const {
  SeriesScan first = Scan(series, attempt);
  TACHO_ASSIGN_OR_RETURN(const AxisExtent extent, FindExtent(series, attempt, &first));
  if (extent.empty()) return ReducedSeries();
  bool again = false;
  const auto reduce = [&](const BucketGrid& grid) {
    if (std::exchange(again, true)) return BucketsIn(series, attempt, grid);
    return BucketsOf(&first, grid);
  };
  return ReduceWithoutGaps(extent, plan_.max_points, plan_.by_step, reduce);
}

absl::StatusOr<std::vector<Bucket>> RangeReader::BucketsIn(const storage::SeriesPtr& series,
                                                           std::optional<uint32_t> attempt,
                                                           const BucketGrid& grid) const {
  SeriesScan scan = Scan(series, attempt);
  return BucketsOf(&scan, grid);
}

absl::StatusOr<std::vector<Bucket>> RangeReader::BucketsOf(SeriesScan* scan,
                                                           const BucketGrid& grid) const {
  Reducer reducer(grid, plan_.by_step);
  reducer.Reserve(std::min<size_t>(plan_.max_points, kUsualPoints));
  TACHO_RETURN_IF_ERROR(scan->ForEach(
      InBuckets(grid), [&reducer](const storage::Chunk& chunk) { reducer.Add(chunk); }));
  return reducer.Take();
}

absl::Status RangeReader::FoldInto(const storage::SeriesPtr& series,
                                   std::optional<uint32_t> attempt, const BucketGrid& grid,
                                   FoldByTime* fold) const {
  TACHO_CHECK(!plan_.by_step);
  TACHO_RETURN_IF_ERROR(
      Scan(series, attempt).ForEach(InBuckets(grid), [&](const storage::Chunk& chunk) {
        if (!plan_.grid.has_value() || chunk.is_summary()) return fold->Add(chunk);
        const storage::SampleColumns& columns = chunk.samples().columns;
        const auto in_grid =
            std::lower_bound(columns.times.begin(), columns.times.end(), plan_.grid->first);
        fold->Add(
            columns.Rows(static_cast<size_t>(in_grid - columns.times.begin()), columns.size()));
      }));
  return fold->EndSeries();
}

absl::Status RangeReader::Touch(const storage::SeriesPtr& series,
                                std::optional<uint32_t> attempt) const {
  SeriesScan scan = Scan(series, attempt);
  storage::Want want;
  std::optional<BucketGrid> grid;
  if (plan_.max_points > 0) {
    TACHO_ASSIGN_OR_RETURN(const AxisExtent extent, FindExtent(series, attempt, &scan));
    if (extent.empty()) return absl::OkStatus();
    grid.emplace(extent, plan_.max_points);
    want = InBuckets(*grid);
  }
  storage::Chunk chunk;
  for (bool more = true; more;) {
    TACHO_ASSIGN_OR_RETURN(more, scan.Next(want, &chunk));
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query

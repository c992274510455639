#include "server/query/range/range_reader.h"

#include <algorithm>
#include <utility>

namespace tacho::server::query {
namespace {

// Buckets for which room is made at once.
constexpr size_t kUsualPoints = 1024;

// Buckets that nobody asks for.
struct NoBuckets {
  void AddByTime(const storage::SampleSummary&) {}
  void Add(const storage::SampleColumns&) {}
};

}  // namespace

RangeReader::RangeReader(const RangePlan& plan, const QueryControl& control,
                         std::unique_ptr<storage::ReadView> view)
    : plan_(plan), control_(control), view_(std::move(view)) {}

SeriesScan RangeReader::Scan(const storage::SeriesPtr& series,
                             std::optional<uint32_t> attempt) const {
  storage::ReadOptions read = plan_.read;
  if (attempt.has_value()) read.attempt = attempt;
  read.bound_steps = plan_.selection.attempts.needs_step_bounds();
  return SeriesScan(view_->Read(series, read), plan_.selection.attempts, control_, plan_.counter);
}

absl::StatusOr<AxisExtent> RangeReader::ExtentOf(const storage::SeriesPtr& series,
                                                 std::optional<uint32_t> attempt) {
  AxisExtent extent;
  SeriesScan scan = Scan(series, attempt);
  absl::Status status;
  if (plan_.by_step) {
    status = scan.ForEachColumns([](const storage::SampleSummary&) { return false; },
                                 [](const storage::SampleSummary&) {},
                                 [&](const storage::SampleColumns& columns) {
                                   for (const int64_t step : columns.steps) extent.Include(step);
                                 },
                                 &block_);
  } else {
    status = scan.ForEachBounds(
        [&](int64_t first_ns, int64_t last_ns) {
          extent.Include(first_ns);
          extent.Include(last_ns);
        },
        &block_);
  }
  block_.clear();
  if (!status.ok()) return status;
  return extent;
}

absl::StatusOr<std::vector<Bucket>> RangeReader::Reduce(const storage::SeriesPtr& series,
                                                        std::optional<uint32_t> attempt,
                                                        const AxisExtent& extent) {
  if (extent.empty()) return std::vector<Bucket>();
  const BucketGrid grid(extent, plan_.max_points);
  Reducer reducer(grid, plan_.by_step);
  reducer.Reserve(std::min<size_t>(plan_.max_points, kUsualPoints));
  absl::Status status = ReadInto(series, attempt, grid, &reducer);
  if (!status.ok()) return status;
  return reducer.Take();
}

absl::Status RangeReader::FoldInto(const storage::SeriesPtr& series,
                                   std::optional<uint32_t> attempt, const BucketGrid& grid,
                                   FoldByTime* fold) {
  absl::Status status = ReadInto(series, attempt, grid, fold);
  return status.ok() ? fold->EndSeries() : status;
}

absl::Status RangeReader::Touch(const storage::SeriesPtr& series, std::optional<uint32_t> attempt) {
  if (plan_.max_points > 0) {
    const absl::StatusOr<AxisExtent> extent = ExtentOf(series, attempt);
    if (!extent.ok() || extent->empty()) return extent.status();
    NoBuckets none;
    return ReadInto(series, attempt, BucketGrid(*extent, plan_.max_points), &none);
  }
  return Scan(series, attempt)
      .ForEachColumns([](const storage::SampleSummary&) { return false; },
                      [](const storage::SampleSummary&) {}, [](const storage::SampleColumns&) {},
                      &block_);
}

template <typename Buckets>
absl::Status RangeReader::ReadInto(const storage::SeriesPtr& series,
                                   std::optional<uint32_t> attempt, const BucketGrid& grid,
                                   Buckets* buckets) {
  absl::Status status =
      Scan(series, attempt)
          .ForEachColumns(
              [&](const storage::SampleSummary& summary) {
                return !plan_.by_step &&
                       grid.IndexOf(summary.first_time_ns) == grid.IndexOf(summary.last_time_ns);
              },
              [&](const storage::SampleSummary& summary) { buckets->AddByTime(summary); },
              [&](const storage::SampleColumns& columns) { buckets->Add(columns); }, &block_);
  block_.clear();
  return status;
}

}  // namespace tacho::server::query

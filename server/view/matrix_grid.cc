#include "server/view/matrix_grid.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/quantile.h"

namespace tacho::server::view {
namespace {

// Unsigned, so that all of int64 fits.
uint64_t Distance(int64_t from, int64_t to) {
  return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
}

// The lower one of two: gaps make intervals too long, and nothing makes them too short. Not empty.
uint64_t LowerMedian(std::vector<uint64_t>* values) {
  const auto middle = values->begin() + static_cast<ptrdiff_t>((values->size() - 1) / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

// `times` has at least two.
uint64_t IntervalOf(std::span<const int64_t> times) {
  std::vector<uint64_t> intervals;
  intervals.reserve(times.size() - 1);
  for (size_t i = 1; i < times.size(); ++i) {
    intervals.push_back(Distance(times[i - 1], times[i]));
  }
  return LowerMedian(&intervals);
}

}  // namespace

const storage::Want& MatrixSurvey::wanted() const {
  static const storage::Want samples;
  static const storage::Want summaries = storage::AnySummary();
  static const storage::Want bounds = {.summary = storage::AnySummary().summary,
                                       .step_bounds = true};
  if (!by_step_) return summaries;
  return spacing_ == 1 ? bounds : samples;
}

void MatrixSurvey::AddStep(int64_t step) {
  if (step == storage::kNoStep) return;
  const bool first = extent_.empty();
  extent_.Include(step);
  const int64_t before = std::exchange(newest_step_, step);
  if (first) return;
  const uint64_t distance = before < step ? Distance(before, step) : Distance(step, before);
  // The usual case, without a division.
  if (distance == spacing_ || distance == 0) return;
  spacing_ = std::gcd(spacing_, distance);
}

void MatrixSurvey::AddTimes(const storage::Chunk& chunk) {
  extent_.Include(chunk.first_time_ns());
  extent_.Include(chunk.last_time_ns());
  if (!chunk.is_summary()) {
    const std::span<const int64_t> times = chunk.samples().columns.times;
    if (times.size() > 1) chunk_intervals_ns_.push_back(IntervalOf(times));
  } else if (chunk.summary().count > 1) {
    // The mean, in which a gap counts. Chunks without a gap are mostly more.
    chunk_intervals_ns_.push_back(Distance(chunk.first_time_ns(), chunk.last_time_ns()) /
                                  (chunk.summary().count - 1));
  }
}

void MatrixSurvey::Add(const storage::Chunk& chunk) {
  if (!by_step_) return AddTimes(chunk);
  if (chunk.is_summary()) {
    AddStep(chunk.summary().lowest_step);
    AddStep(chunk.summary().highest_step);
    return;
  }
  for (const int64_t step : chunk.samples().columns.steps) AddStep(step);
}

void MatrixSurvey::EndSeries() {
  if (chunk_intervals_ns_.empty()) return;
  const uint64_t interval_ns = LowerMedian(&chunk_intervals_ns_);
  chunk_intervals_ns_.clear();
  if (interval_ns == 0) return;
  row_interval_ns_ = row_interval_ns_ == 0 ? interval_ns : std::min(row_interval_ns_, interval_ns);
}

void MatrixSurvey::EndRow() {
  if (row_interval_ns_ > 0) row_intervals_ns_.push_back(row_interval_ns_);
  row_interval_ns_ = 0;
}

uint64_t MatrixSurvey::MinWidth() const {
  if (by_step_) return std::max<uint64_t>(1, spacing_);
  if (row_intervals_ns_.empty()) return 1;
  // Most rows have the same; a few that are rarely recorded must not make all columns wide.
  const uint64_t interval_ns = UpperMedian(row_intervals_ns_);
  // Samples never come in exactly equal intervals: in columns as wide as one, some would be empty.
  return interval_ns + std::min(interval_ns / 2, UINT64_MAX - interval_ns);
}

MatrixGrid MatrixSurvey::Grid(uint32_t max_columns,
                              const std::optional<query::AxisExtent>& asked) const {
  TACHO_CHECK(!empty());
  const query::AxisExtent extent = asked.value_or(extent_);
  MatrixGrid grid{.buckets = query::BucketGrid(std::span(&extent, 1), max_columns, MinWidth()),
                  .first_position = extent.first};
  grid.width = grid.buckets.width();
  const uint64_t length = Distance(extent.first, extent.last);
  if (grid.width == 0) grid.width = length == UINT64_MAX ? length : length + 1;
  grid.columns = grid.buckets.IndexOf(extent.last) + 1;
  return grid;
}

}  // namespace tacho::server::view

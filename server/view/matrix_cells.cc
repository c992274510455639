// A cell keeps all that any of the values needs: the row that is being read is small enough for
// that. The other rows keep only the value that was asked for.
#include "server/view/matrix_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "proto/base/status_macros.h"

namespace tacho::server::view {
namespace {

constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();
// A cache line of values: they are laid out row by row.
constexpr uint32_t kColumnsAtOnce = 16;

float FiniteFloat(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

// Adds `count` finite samples; the last of them is at `at`.
void AddFinite(const query::FiniteValues& values, uint64_t count, double last,
               std::pair<int64_t, int64_t> at, MatrixCell* cell) {
  const bool first = cell->finite == 0;
  cell->min = first ? values.min : std::min(cell->min, values.min);
  cell->max = first ? values.max : std::max(cell->max, values.max);
  cell->sum += values.sum;
  cell->finite += count;
  if (first || at >= cell->last_at) {
    cell->last = last;
    cell->last_at = at;
  }
}

}  // namespace

float MatrixCell::Value(v1::BucketValue value) const {
  if (finite == 0) return kNoValue;
  switch (value) {
    case v1::BUCKET_VALUE_MIN:
      return FiniteFloat(min);
    case v1::BUCKET_VALUE_AVG:
      return FiniteFloat(static_cast<double>(sum / static_cast<long double>(finite)));
    case v1::BUCKET_VALUE_LAST:
      return FiniteFloat(last);
    default:
      return FiniteFloat(max);
  }
}

void MatrixRowCells::AddRun(const storage::SampleColumns& columns, size_t begin, size_t end,
                            MatrixCell* cell) {
  const auto position_of = [&](size_t i) {
    return std::pair(by_step_ ? columns.steps[i] : columns.times[i], columns.times[i]);
  };
  const auto values = columns.values.subspan(begin, end - begin);
  query::FiniteValues usual;
  if (usual.Take(values)) {
    AddFinite(usual, values.size(), values.back(), position_of(end - 1), cell);
    return;
  }
  for (size_t i = begin; i < end; ++i) {
    const double value = columns.values[i];
    if (std::isfinite(value)) {
      AddFinite({value, value, value}, 1, value, position_of(i), cell);
    } else {
      cell->non_finite = true;
    }
  }
}

void MatrixRowCells::AddByTime(const storage::SampleColumns& columns) {
  const std::span<const int64_t> times = columns.times;
  uint32_t index = 0;
  for (size_t i = 0; i < times.size();) {
    index = i == 0 ? grid_.IndexOf(times[i]) : grid_.IndexAfter(index, times[i]);
    const int64_t last = grid_.LastOf(index);
    const size_t begin = i;
    while (i < times.size() && times[i] <= last) ++i;
    AddRun(columns, begin, i, &cells_[index]);
  }
}

void MatrixRowCells::AddByStep(const storage::SampleColumns& columns) {
  const std::span<const int64_t> steps = columns.steps;
  for (size_t i = 0; i < steps.size();) {
    const uint32_t index = grid_.IndexOf(steps[i]);
    const int64_t last = grid_.LastOf(index);
    const size_t begin = i++;
    // Steps mostly rise; a run ends where they fall.
    while (i < steps.size() && steps[i] >= steps[i - 1] && steps[i] <= last) ++i;
    AddRun(columns, begin, i, &cells_[index]);
  }
}

void MatrixRowCells::AddByTime(const storage::SampleSummary& summary) {
  AddFinite({summary.min, summary.max, summary.sum}, summary.count, summary.last,
            {summary.last_time_ns, summary.last_time_ns},
            &cells_[grid_.IndexOf(summary.first_time_ns)]);
}

void MatrixRowCells::Add(const storage::Chunk& chunk) {
  if (chunk.is_summary()) {
    TACHO_CHECK(!by_step_);
    samples_ += chunk.summary().count;
    return AddByTime(chunk.summary());
  }
  const storage::SampleColumns& columns = chunk.samples().columns;
  samples_ += columns.size();
  by_step_ ? AddByStep(columns) : AddByTime(columns);
}

storage::Want MatrixRowCells::wanted() const {
  if (by_step_) return {};
  return {.summary = [this](const storage::SampleSummary& summary) {
    return grid_.IndexOf(summary.first_time_ns) == grid_.IndexOf(summary.last_time_ns);
  }};
}

void MatrixRowCells::Clear() {
  std::fill(cells_.begin(), cells_.end(), MatrixCell());
  samples_ = 0;
}

void MatrixTable::AddRow(std::span<const MatrixCell> cells) {
  TACHO_CHECK(cells.size() == columns_);
  Row row;
  uint32_t occupied = 0;
  for (uint32_t column = 0; column < columns_; ++column) {
    const MatrixCell& cell = cells[column];
    values_.push_back(cell.Value(value_));
    non_finite_.push_back(cell.non_finite);
    if (cell.empty()) continue;
    if (occupied++ == 0) row.first_column = column;
    row.last_column = column;
    row.non_finite += cell.non_finite ? 1 : 0;
  }
  TACHO_CHECK(occupied > 0);
  row.holes = row.last_column - row.first_column + 1 - occupied;
  rows_.push_back(row);
}

absl::Status MatrixTable::FindScores(const query::QueryControl& control) {
  median_.assign(columns_, kNoValue);
  low_ = high_ = median_;
  for (uint32_t begin = 0; begin < columns_; begin += kColumnsAtOnce) {
    TACHO_RETURN_IF_ERROR(control.Check());
    FindMedians(begin, std::min(columns_, begin + kColumnsAtOnce));
  }
  for (size_t row = 0; row < rows_.size(); ++row) rows_[row].score = ScoreOf(row);
  return absl::OkStatus();
}

void MatrixTable::FindMedians(uint32_t begin_column, uint32_t end_column) {
  std::array<std::vector<double>, kColumnsAtOnce> columns;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (uint32_t column = begin_column; column < end_column; ++column) {
      const float value = values_[row * columns_ + column];
      if (!std::isnan(value)) columns[column - begin_column].push_back(value);
    }
  }
  for (uint32_t column = begin_column; column < end_column; ++column) {
    std::vector<double>& values = columns[column - begin_column];
    if (values.empty()) continue;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    low_[column] = static_cast<float>(*low);
    high_[column] = static_cast<float>(*high);
    median_[column] = static_cast<float>(Median(std::move(values)));
  }
}

double MatrixTable::ScoreOf(size_t row) const {
  double sum = 0;
  uint64_t count = 0;
  const std::span<const float> values = ValuesOf(row);
  for (uint32_t column = 0; column < columns_; ++column) {
    if (std::isnan(values[column]) || median_[column] == 0) continue;
    sum += static_cast<double>(values[column]) / static_cast<double>(median_[column]);
    ++count;
  }
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return sum / static_cast<double>(count);
}

}  // namespace tacho::server::view

#include "server/query/compared_metric.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "server/query/reduce.h"

namespace tacho::server {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A row of one subject.
struct Cell {
  uint64_t places = 0;
  double value = 0;     // Of the last place.
  long double sum = 0;  // Of finite values.
  uint64_t finite = 0;
  double lowest = kNan;
  double highest = kNan;
  uint64_t count = 0;
  uint64_t non_finite = 0;

  void Add(const ComparedPlace& place) {
    ++places;
    value = place.value;
    if (std::isfinite(place.value)) {
      sum += place.value;
      ++finite;
    }
    lowest = std::fmin(lowest, place.lowest);  // Skips NaN.
    highest = std::fmax(highest, place.highest);
    count += place.count;
    non_finite += place.non_finite;
  }
  double avg() const {
    if (places == 1) return value;
    return finite == 0 ? kNan : static_cast<double>(sum / static_cast<long double>(finite));
  }
  // Of a single sample that is not finite, that sample.
  double min() const { return count == 1 && non_finite == 1 ? value : lowest; }
  double max() const { return count == 1 && non_finite == 1 ? value : highest; }
};

std::vector<int64_t> PositionsOf(const std::vector<std::vector<ComparedPlace>>& subjects) {
  std::vector<int64_t> positions;
  std::vector<int64_t> merged;
  for (const auto& places : subjects) {
    std::vector<int64_t> own;
    own.reserve(places.size());
    for (const ComparedPlace& place : places) own.push_back(place.position);
    merged.clear();
    std::set_union(positions.begin(), positions.end(), own.begin(), own.end(),
                   std::back_inserter(merged));
    positions.swap(merged);
  }
  return positions;
}

// Which row each position belongs to.
class Rows {
 public:
  Rows(std::vector<int64_t> positions, uint32_t max_rows) : positions_(std::move(positions)) {
    if (positions_.size() <= max_rows) return;
    const AxisExtent extent{positions_.front(), positions_.back()};
    const BucketGrid grid(extent, max_rows);
    std::vector<int64_t> firsts;
    for (const int64_t position : positions_) {
      const uint32_t index = grid.IndexOf(position);
      const int64_t first = index == 0 ? extent.first : grid.LastOf(index - 1) + 1;
      if (firsts.empty() || firsts.back() != first) firsts.push_back(first);
    }
    positions_ = std::move(firsts);
  }

  size_t size() const { return positions_.size(); }
  const std::vector<int64_t>& positions() const { return positions_; }
  // Positions are asked for in ascending order: *hint is where the last was found.
  size_t RowOf(int64_t position, size_t hint) const {
    while (hint + 1 < positions_.size() && positions_[hint + 1] <= position) ++hint;
    return hint;
  }

 private:
  std::vector<int64_t> positions_;  // Of the rows; of a bucket the first.
};

std::vector<Cell> CellsOf(const std::vector<ComparedPlace>& places, const Rows& rows) {
  std::vector<Cell> cells(rows.size());
  size_t row = 0;
  for (const ComparedPlace& place : places) {
    row = rows.RowOf(place.position, row);
    cells[row].Add(place);
  }
  return cells;
}

void SummariseSamples(const std::vector<Cell>& cells, const std::vector<int64_t>& positions,
                      v1::ComparedSummary* summary) {
  double min = kNan;
  double max = kNan;
  long double sum = 0;
  uint64_t finite = 0;
  summary->set_last(kNan);
  for (size_t row = 0; row < cells.size(); ++row) {
    const Cell& cell = cells[row];
    if (cell.count == 0) continue;
    summary->set_count(summary->count() + cell.count);
    summary->set_non_finite(summary->non_finite() + cell.non_finite);
    min = std::fmin(min, cell.lowest);
    max = std::fmax(max, cell.highest);
    if (std::isfinite(cell.avg())) {
      sum += cell.avg();
      ++finite;
    }
    summary->set_last(cell.avg());
    summary->set_last_position(positions[row]);
  }
  summary->set_min(min);
  summary->set_max(max);
  summary->set_avg(finite == 0 ? kNan
                               : static_cast<double>(sum / static_cast<long double>(finite)));
}

void SummariseDifferences(const std::vector<Cell>& first, const std::vector<Cell>& cells,
                          v1::ComparedSummary* summary) {
  long double differences = 0;
  long double firsts = 0;
  double largest = 0;
  uint64_t shared = 0;
  for (size_t row = 0; row < cells.size(); ++row) {
    if (first[row].count == 0 || cells[row].count == 0) continue;
    const double base = first[row].avg();
    const double value = cells[row].avg();
    if (!std::isfinite(base) || !std::isfinite(value)) continue;
    ++shared;
    differences += value - base;
    firsts += base;
    largest = std::max(largest, std::abs(value - base));
  }
  summary->set_shared(shared);
  const auto count = static_cast<long double>(shared);
  const double mean = shared == 0 ? kNan : static_cast<double>(differences / count);
  const double base = shared == 0 ? kNan : std::abs(static_cast<double>(firsts / count));
  summary->set_mean_difference(mean);
  summary->set_max_difference(shared == 0 ? kNan : largest);
  summary->set_relative_difference(base == 0 ? kNan : mean / base);
}

void FillColumn(const std::vector<Cell>& first, const std::vector<Cell>& cells, bool is_first,
                v1::ComparedColumn* column) {
  for (size_t row = 0; row < cells.size(); ++row) {
    const Cell& cell = cells[row];
    const bool none = cell.count == 0;
    column->add_avg(none ? kNan : cell.avg());
    column->add_min(none ? kNan : cell.min());
    column->add_max(none ? kNan : cell.max());
    column->add_counts(cell.count);
    column->add_non_finite(cell.non_finite);
    if (is_first) continue;
    const bool both = !none && first[row].count > 0;
    column->add_difference(both ? cell.avg() - first[row].avg() : kNan);
  }
}

}  // namespace

std::vector<ComparedPlace> AsPlaces(const std::vector<FoldedPlace>& folded) {
  std::vector<ComparedPlace> places;
  places.reserve(folded.size());
  for (const FoldedPlace& place : folded) {
    places.push_back(
        {place.position, place.value, place.lowest, place.highest, place.count, place.non_finite});
  }
  return places;
}

void FillComparison(const std::vector<std::vector<ComparedPlace>>& subjects, uint32_t max_rows,
                    v1::CompareMetric* metric) {
  const Rows rows(PositionsOf(subjects), max_rows);
  metric->mutable_positions()->Add(rows.positions().begin(), rows.positions().end());
  std::vector<Cell> first;
  for (size_t i = 0; i < subjects.size(); ++i) {
    std::vector<Cell> cells = CellsOf(subjects[i], rows);
    if (i == 0) first = cells;
    v1::ComparedColumn* column = metric->add_columns();
    FillColumn(first, cells, i == 0, column);
    SummariseSamples(cells, rows.positions(), column->mutable_summary());
    SummariseDifferences(first, cells, column->mutable_summary());
  }
}

}  // namespace tacho::server

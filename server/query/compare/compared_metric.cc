// Lays the subjects' places side by side. Rows are the union of all positions, so the columns are
// walked together like a merge of sorted lists; too many rows become buckets. Summaries never see
// rows, so that a figure does not change with their number.
#include "server/query/compare/compared_metric.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

#include "proto/base/check.h"
#include "server/query/read/reduce.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A row of one subject.
struct Cell {
  double avg = kNan;  // The value itself if there is a single place.
  double lowest = kNan;
  double highest = kNan;
  uint64_t count = 0;
  uint64_t non_finite = 0;

  // If the only sample is not finite, these return that sample.
  double min() const { return count == 1 && non_finite == 1 ? avg : lowest; }
  double max() const { return count == 1 && non_finite == 1 ? avg : highest; }
};

// Neither is NaN unless nothing has been entered yet.
void Widen(double lowest, double highest, Cell* cell) {
  cell->lowest = cell->lowest < lowest ? cell->lowest : lowest;
  cell->highest = cell->highest > highest ? cell->highest : highest;
}

double Mean(long double sum, uint64_t count) {
  return count == 0 ? kNan : static_cast<double>(sum / static_cast<long double>(count));
}

// The cell of places that are one sample each; there is at least one.
Cell CellOfSamples(std::span<const double> samples) {
  Cell cell;
  long double sum = 0;
  uint64_t finite = samples.size();
  // The usual case without a branch on values; in the order of CellOfPlaces(), so that sums and
  // zeros' signs are the same to the bit, which FiniteValues does not promise.
  double low = samples.front();
  double high = low;
  double zero = 0;  // Becomes NaN if a sample is not finite.
  for (const double sample : samples) {
    low = low < sample ? low : sample;
    high = high > sample ? high : sample;
    sum += sample;
    zero += sample - sample;
  }
  if (zero == 0) {
    cell.lowest = low;
    cell.highest = high;
  } else {
    sum = 0;
    finite = 0;
    for (const double sample : samples) {
      if (!std::isfinite(sample)) continue;
      sum += sample;
      ++finite;
      Widen(sample, sample, &cell);
    }
  }
  cell.count = samples.size();
  cell.non_finite = cell.count - finite;
  // A sum of nothing but -0 is 0.
  cell.avg = samples.size() == 1 ? samples.front() + 0.0 : Mean(sum, finite);
  return cell;
}

Cell CellOfPlaces(std::span<const double> values, std::span<const ComparedSpread> spreads) {
  Cell cell;
  long double sum = 0;
  uint64_t finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++finite;
  }
  for (const ComparedSpread& spread : spreads) {
    if (!std::isnan(spread.lowest)) Widen(spread.lowest, spread.highest, &cell);
    cell.count += spread.count;
    cell.non_finite += spread.non_finite;
  }
  cell.avg = values.size() == 1 ? values.front() : Mean(sum, finite);
  return cell;
}

std::vector<int64_t> Union(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// The first positions of those buckets in which there are some, ascending.
std::vector<int64_t> FirstsOf(std::span<const int64_t> positions, const AxisExtent& extent,
                              const BucketGrid& grid) {
  std::vector<int64_t> firsts;
  uint32_t index = 0;
  for (size_t i = 0; i < positions.size();) {
    index = i == 0 ? grid.IndexOf(positions[i]) : grid.IndexAfter(index, positions[i]);
    firsts.push_back(index == 0 ? extent.first : grid.LastOf(index - 1) + 1);
    const int64_t last = grid.LastOf(index);
    while (i < positions.size() && positions[i] <= last) ++i;
  }
  return firsts;
}

// Where rows begin: at every position, or at those of buckets if there are more than `max_rows`.
std::vector<int64_t> RowsOf(const std::vector<ComparedPlaces>& subjects, uint32_t max_rows) {
  AxisExtent extent;
  std::vector<int64_t> all;  // Positions, unless one subject alone has too many.
  bool many = false;
  for (const ComparedPlaces& places : subjects) {
    if (places.size() == 0) continue;
    extent.Include(places.positions.front());
    extent.Include(places.positions.back());
    many = many || places.size() > max_rows;
    if (!many) all = Union(all, places.positions);
  }
  if (extent.empty() || (!many && all.size() <= max_rows)) return all;
  const BucketGrid grid(extent, max_rows);
  std::vector<int64_t> firsts;
  for (const ComparedPlaces& places : subjects) {
    firsts = Union(firsts, FirstsOf(places.positions, extent, grid));
  }
  return firsts;
}

std::vector<Cell> CellsOf(const ComparedPlaces& places, std::span<const int64_t> rows) {
  std::vector<Cell> cells(rows.size());
  const std::vector<int64_t>& positions = places.positions;
  size_t begin = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    size_t end = row + 1 == rows.size() ? positions.size() : begin;
    while (end < positions.size() && positions[end] < rows[row + 1]) ++end;
    const size_t count = end - begin;
    if (count == 0) continue;
    const auto values = std::span(places.values).subspan(begin, count);
    cells[row] = places.spreads.empty()
                     ? CellOfSamples(values)
                     : CellOfPlaces(values, std::span(places.spreads).subspan(begin, count));
    begin = end;
  }
  return cells;
}

double AverageOfFinite(std::span<const double> values) {
  long double sum = 0;
  uint64_t finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++finite;
  }
  return Mean(sum, finite);
}

void SummariseSamples(const ComparedPlaces& places, const ComparedFigures& figures,
                      bool average_samples, v1::ComparedSummary* summary) {
  summary->set_count(figures.count);
  summary->set_non_finite(figures.non_finite);
  summary->set_min(figures.min);
  summary->set_max(figures.max);
  summary->set_avg(average_samples ? figures.Average() : AverageOfFinite(places.values));
  summary->set_first(figures.first.value);
  summary->set_first_position(figures.first.position);
  summary->set_last(figures.last.value);
  summary->set_last_position(figures.last.position);
  if (figures.increase.has_value()) summary->set_increase(*figures.increase);
  if (figures.rate.has_value()) summary->set_rate(*figures.rate);
}

// Calls visit(base, value) with the finite values at the places that both have.
template <typename Visit>
void ForEachShared(const ComparedPlaces& first, const ComparedPlaces& places, const Visit& visit) {
  for (size_t i = 0, j = 0; i < first.size() && j < places.size();) {
    if (first.positions[i] != places.positions[j]) {
      ++(first.positions[i] < places.positions[j] ? i : j);
      continue;
    }
    const double base = first.values[i++];
    const double value = places.values[j++];
    if (std::isfinite(base) && std::isfinite(value)) visit(base, value);
  }
}

void SummariseDifferences(const ComparedPlaces& first, const ComparedPlaces& places,
                          v1::ComparedSummary* summary) {
  long double differences = 0;
  long double firsts = 0;
  double largest = 0;
  uint64_t shared = 0;
  ForEachShared(first, places, [&](double base, double value) {
    ++shared;
    differences += value - base;
    firsts += base;
    largest = std::max(largest, std::abs(value - base));
  });
  summary->set_shared(shared);
  const double mean = Mean(differences, shared);
  const double base = std::abs(Mean(firsts, shared));
  summary->set_mean_difference(mean);
  summary->set_max_difference(shared == 0 ? kNan : largest);
  summary->set_relative_difference(base == 0 ? kNan : mean / base);
}

void FillColumn(const std::vector<Cell>& first, const std::vector<Cell>& cells, bool is_first,
                const ComparedValues& values, v1::ComparedColumn* column) {
  const auto rows = static_cast<int>(cells.size());
  // Where the entries go; null where they are not wanted.
  const auto extend = [rows](bool wanted, auto* entries) {
    if (wanted) entries->Reserve(rows);
    return wanted ? entries->AddNAlreadyReserved(rows) : nullptr;
  };
  double* const avg = extend(values.Has(v1::COMPARED_VALUE_AVG), column->mutable_avg());
  double* const min = extend(values.Has(v1::COMPARED_VALUE_MIN), column->mutable_min());
  double* const max = extend(values.Has(v1::COMPARED_VALUE_MAX), column->mutable_max());
  double* const difference =
      extend(!is_first && values.Has(v1::COMPARED_VALUE_DIFFERENCE), column->mutable_difference());
  uint64_t* const counts = extend(true, column->mutable_counts());
  uint64_t* const non_finite = extend(true, column->mutable_non_finite());
  for (size_t row = 0; row < cells.size(); ++row) {
    const Cell& cell = cells[row];
    counts[row] = cell.count;
    non_finite[row] = cell.non_finite;
    // Without a sample they are NaN.
    if (avg != nullptr) avg[row] = cell.avg;
    if (min != nullptr) min[row] = cell.min();
    if (max != nullptr) max[row] = cell.max();
    if (difference != nullptr) difference[row] = cell.avg - first[row].avg;
  }
}

}  // namespace

void ComparedFigures::Add(std::span<const double> samples) {
  if (samples.empty()) return;
  count += samples.size();
  FiniteValues usual;
  if (usual.Take(samples)) {
    min = Lower(min, usual.min);
    max = Higher(max, usual.max);
    sum += usual.sum;
    return;
  }
  for (const double sample : samples) {
    if (!std::isfinite(sample)) {
      ++non_finite;
      continue;
    }
    min = Lower(min, sample);
    max = Higher(max, sample);
    sum += sample;
  }
}

void ComparedFigures::Add(const Bucket& bucket) {
  count += bucket.count;
  non_finite += bucket.non_finite;
  min = Lower(min, bucket.min);
  max = Higher(max, bucket.max);
  sum += bucket.sum;
}

double ComparedFigures::Average() const { return Mean(sum, count - non_finite); }

ComparedPlaces AsPlaces(const std::vector<FoldedPlace>& folded) {
  ComparedPlaces places;
  places.positions.reserve(folded.size());
  places.values.reserve(folded.size());
  places.spreads.reserve(folded.size());
  for (const FoldedPlace& place : folded) {
    places.positions.push_back(place.position);
    places.values.push_back(place.value);
    places.spreads.push_back({place.lowest, place.highest, place.count, place.non_finite});
  }
  return places;
}

void FillComparison(const std::vector<ComparedPlaces>& subjects, uint32_t max_rows,
                    const ComparedValues& values, v1::CompareMetric* metric) {
  const std::vector<int64_t> rows = RowsOf(subjects, max_rows);
  metric->mutable_positions()->Add(rows.begin(), rows.end());
  std::vector<Cell> first;
  for (size_t i = 0; i < subjects.size(); ++i) {
    std::vector<Cell> cells = CellsOf(subjects[i], rows);
    if (i == 0) first = cells;
    FillColumn(first, cells, i == 0, values, metric->add_columns());
  }
}

void FillSummaries(const std::vector<ComparedPlaces>& subjects,
                   const std::vector<ComparedFigures>& figures, bool average_samples,
                   v1::CompareMetric* metric) {
  const auto columns = static_cast<size_t>(metric->columns_size());
  TACHO_CHECK(subjects.size() == columns && figures.size() == columns);
  for (size_t i = 0; i < columns; ++i) {
    v1::ComparedSummary* summary = metric->mutable_columns(static_cast<int>(i))->mutable_summary();
    SummariseSamples(subjects[i], figures[i], average_samples, summary);
    SummariseDifferences(subjects.front(), subjects[i], summary);
  }
}

}  // namespace tacho::server::query

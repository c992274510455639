// One metric of several subjects side by side: rows along the axis, differences, summaries.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/query/range/pieces.h"
#include "server/query/read/across.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// The samples at one place.
struct ComparedSpread {
  double lowest = 0;  // Over the finite ones; NaN if there is none.
  double highest = 0;
  uint64_t count = 0;
  uint64_t non_finite = 0;
};

// A subject's values along the axis, in columns of equal length.
struct ComparedPlaces {
  std::vector<int64_t> positions;  // Steps, or indexes of buckets of time; ascending, each once.
  std::vector<double> values;      // Across the subject's series.
  // Empty: every place is one sample as it was recorded, whose value is its own sum.
  std::vector<ComparedSpread> spreads;

  size_t size() const { return positions.size(); }
};
// From what a fold returned.
ComparedPlaces AsPlaces(const std::vector<FoldedPlace>& folded);

using ComparedValues = ValueSet<v1::ComparedValue>;

// Fills the positions and the columns that are in `values`. More than `max_rows` distinct positions
// become buckets of equal width.
void FillComparison(const std::vector<ComparedPlaces>& subjects, uint32_t max_rows,
                    const ComparedValues& values, v1::CompareMetric* metric);

}  // namespace tacho::server::query

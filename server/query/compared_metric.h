// One metric of several subjects side by side: rows along the axis, differences, summaries.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/query/across.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server {

// What a subject has at a place along the axis.
struct ComparedPlace {
  int64_t position = 0;  // Step, or index of a bucket of time.
  double value = 0;      // Across the subject's series.
  double lowest = 0;     // Of its finite samples; NaN if there is none.
  double highest = 0;
  uint64_t count = 0;
  uint64_t non_finite = 0;
};
// Of what a fold returned.
std::vector<ComparedPlace> AsPlaces(const std::vector<FoldedPlace>& folded);

// Fills positions and columns. `subjects` have one list each, ascending in position. More than
// `max_rows` distinct positions are put into buckets of equal width.
void FillComparison(const std::vector<std::vector<ComparedPlace>>& subjects, uint32_t max_rows,
                    v1::CompareMetric* metric);

}  // namespace tacho::server

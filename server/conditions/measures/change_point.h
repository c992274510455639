// Where a series changed its level for the worse.
#pragma once

#include <cstddef>
#include <vector>

namespace tacho::server::conditions {

struct ChangePoint {
  size_t index = 0;  // Of the first value after it.
  double p = 1;      // That chance makes as great a rise, of independent values.
};

// The split that the Mann-Whitney test finds the most unlikely, with at least `margin` values on
// either side, and what is after it greater. Ties have the mean of their ranks. p is that of the
// test, times the number of splits (Bonferroni). O(n log n). p is 1 if there are too few values.
ChangePoint FindRise(const std::vector<double>& values, size_t margin);

}  // namespace tacho::server::conditions

// Quantiles of a few numbers, the same wherever we show them.
#pragma once

#include <vector>

namespace tacho::server::query {

// The q-quantile (0 to 1) of `sorted`, ascending and without NaN, by linear interpolation between
// the closest ranks, as Prometheus' quantile() does. NaN if it is empty.
double QuantileOfSorted(const std::vector<double>& sorted, double q);

}  // namespace tacho::server::query

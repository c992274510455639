#include "server/query/read/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tacho::server::query {

double QuantileOfSorted(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = rank - std::floor(rank);
  // Equal neighbours need no arithmetic, which would make NaN of two infinities.
  if (weight == 0 || sorted[below] == sorted[above]) return sorted[below];
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

}  // namespace tacho::server::query

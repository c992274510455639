#include "proto/base/quantile.h"

#include <cmath>
#include <limits>

namespace tacho {
namespace {

double Between(double below, double above, double weight) {
  // Equal neighbours need no arithmetic, which would make NaN of two infinities.
  if (weight == 0 || below == above) return below;
  return below * (1 - weight) + above * weight;
}

}  // namespace

double QuantileOfSorted(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return Between(sorted[below], sorted[above], rank - std::floor(rank));
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(std::floor(rank));
  std::nth_element(values.begin(), below, values.end());
  if (below + 1 == values.end()) return *below;
  return Between(*below, *std::min_element(below + 1, values.end()), rank - std::floor(rank));
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

}  // namespace tacho

#include "server/conditions/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace tacho::server {
namespace {

double Select(std::vector<double>& values, size_t rank) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const size_t middle = values.size() / 2;
  const double upper = Select(values, middle);
  if (values.size() % 2 == 1) return upper;
  // What is before the middle is not greater, by what nth_element does.
  const double lower =
      *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle));
  return lower + (upper - lower) / 2;
}

double MedianDeviation(std::vector<double> values, double center) {
  for (double& value : values) value = std::abs(value - center);
  return Median(std::move(values));
}

double NearestRank(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(q * static_cast<double>(values.size())) - 1;
  const auto last = static_cast<double>(values.size() - 1);
  return Select(values, static_cast<size_t>(std::clamp(rank, 0.0, last)));
}

}  // namespace tacho::server

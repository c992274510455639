#include "server/conditions/measures/robust_trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinPoints = 4;
constexpr double kZ95 = 1.959964;

double MedianOf(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

RobustTrend FitTrend(absl::Span<const double> x, absl::Span<const double> y) {
  RobustTrend trend;
  const size_t n = std::min(x.size(), y.size());
  if (n < kMinPoints) return trend;
  std::vector<double> slopes;
  double rising = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      if (x[j] <= x[i]) continue;
      slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
      rising += y[j] > y[i] ? 1 : (y[j] < y[i] ? -1 : 0);
    }
  }
  if (slopes.empty()) return trend;
  std::sort(slopes.begin(), slopes.end());
  const double pairs = static_cast<double>(slopes.size());
  const double count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count - 1) * (2 * count + 5) / 18);  // Of S.
  const auto at_rank = [&](double rank) {
    return slopes[static_cast<size_t>(std::clamp(std::floor(rank), 0.0, pairs - 1))];
  };
  trend.valid = true;
  trend.slope = at_rank(pairs / 2);
  trend.slope_low = at_rank((pairs - kZ95 * deviation) / 2);
  trend.slope_high = at_rank((pairs + kZ95 * deviation) / 2);
  trend.tau = rising / pairs;
  trend.z = rising / deviation;
  std::vector<double> rests;
  for (size_t i = 0; i < n; ++i) rests.push_back(y[i] - trend.slope * x[i]);
  trend.intercept = MedianOf(&rests);
  return trend;
}

}  // namespace tacho::server::conditions

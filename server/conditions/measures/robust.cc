#include "server/conditions/measures/robust.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace tacho::server::conditions {
namespace {

constexpr double kMadToDeviation = 1.4826;
constexpr double kNormal95 = 1.645;
constexpr size_t kLeastForALine = 4;
// Of a correlation at lag 1: past it nothing that was fitted means much.
constexpr double kMostCorrelation = 0.95;

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + low, values.end());
  const double below = values[static_cast<size_t>(low)];
  if (static_cast<size_t>(low) + 1 == values.size()) return below;
  const double above = *std::min_element(values.begin() + low + 1, values.end());
  return below + (above - below) * (place - static_cast<double>(low));
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double ScaledMad(absl::Span<const double> values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return kMadToDeviation * Median(std::move(distances));
}

double UpperNoise(absl::Span<const double> values) {
  const std::vector<double> copy(values.begin(), values.end());
  const double median = Median(copy);
  return std::max(ScaledMad(values, median), (Quantile(copy, 0.95) - median) / kNormal95);
}

std::vector<double> OffRunningMedian(absl::Span<const double> values, size_t width) {
  std::vector<double> rest(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t first = i - std::min(i, width / 2);
    const size_t count = std::min(width / 2 + 1 + (i - first), values.size() - first);
    const absl::Span<const double> around = values.subspan(first, count);
    rest[i] = values[i] - Median({around.begin(), around.end()});
  }
  return rest;
}

double Autocorrelation(absl::Span<const double> values, size_t lag) {
  if (values.size() <= lag) return 0;
  const double mean = Mean(values);
  double all = 0;
  double lagged = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double here = values[i] - mean;
    all += here * here;
    if (i >= lag) lagged += here * (values[i - lag] - mean);
  }
  return all > 0 ? lagged / all : 0;
}

Line FitLine(absl::Span<const double> x, absl::Span<const double> y) {
  Line line;
  const size_t n = x.size();
  if (n < kLeastForALine) return line;
  const double mean_x = Mean(x);
  const double mean_y = Mean(y);
  double xx = 0;
  double xy = 0;
  for (size_t i = 0; i < n; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx <= 0) return line;
  line.slope = xy / xx;
  line.intercept = mean_y - line.slope * mean_x;
  std::vector<double> rest(n);
  double squares = 0;
  for (size_t i = 0; i < n; ++i) {
    rest[i] = y[i] - line.At(x[i]);
    squares += rest[i] * rest[i];
  }
  const double count = static_cast<double>(n);
  line.residual = std::sqrt(squares / (count - 2));
  const double r = std::clamp(Autocorrelation(rest, 1), 0.0, kMostCorrelation);
  line.slope_error = line.residual / std::sqrt(xx) * std::sqrt((1 + r) / (1 - r));
  line.valid = true;
  return line;
}

}  // namespace tacho::server::conditions

// The statistics of robust.h. Medians and ranks rather than means, because one step that takes an
// hour, or one loss of 1e9, must not decide whether a condition holds.
#include "server/conditions/measures/robust.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/quantile.h"

namespace tacho::server::conditions {
namespace {

constexpr double kMadToDeviation = 1.4826;
constexpr double kNormal95 = 1.645;
constexpr double kZ95 = 1.959964;
constexpr size_t kLeastForALine = 4;
// A larger correlation at lag 1 leaves no meaning to a fit.
constexpr double kMostCorrelation = 0.95;

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] <= values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) ranks[order[begin]] = rank;
  }
  return ranks;
}

}  // namespace

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
  TACHO_CHECK(x.size() == y.size());
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

RobustTrend FitTrend(absl::Span<const double> x, absl::Span<const double> y) {
  TACHO_CHECK(x.size() == y.size());
  RobustTrend trend;
  const size_t n = x.size();
  if (n < kLeastForALine) return trend;
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
  // The standard deviation of Kendall's S.
  const double deviation = std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
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
  trend.intercept = UpperMedian(std::move(rests));
  return trend;
}

ChangePoint FindRise(const std::vector<double>& values, size_t margin) {
  ChangePoint found;
  if (values.size() < 2 * margin || values.size() < 2) return found;
  const std::vector<double> ranks = Ranks(values);
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double highest = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    sum += ranks[i];
    const double u = 2 * sum - static_cast<double>(i + 1) * (n + 1);
    const auto before = static_cast<double>(i + 1);
    const double z = -u / std::sqrt(before * (n - before) * (n + 1) / 3);
    if (i + 1 < margin || values.size() - i - 1 < margin || z <= highest) continue;
    highest = z;
    found.index = i + 1;
  }
  found.p = std::min(1.0, n * std::erfc(highest / std::sqrt(2.0)) / 2);
  return found;
}

}  // namespace tacho::server::conditions

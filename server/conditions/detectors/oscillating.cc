// Oscillating: the loss swings up and down instead of falling.
//
// Definition. From each of the newest `points` losses the median of the quarter of them around it
// is subtracted. The same is done with the means of 4, and of 16, of the newest 4 and 16 times as
// many losses, where there are so many, so that longer periods show. The condition is true if at
// one of these widths
//   - there is a lag k, at most a quarter of the points, at which the values correlate with
//     themselves by more than `correlation`, after they anticorrelated by more than
//     `anticorrelation` at a smaller lag;
//   - both halves of the points show the same correlation, at least half as strong;
//   - the swing, half of the distance from the 10 % to the 90 % quantile, is more than
//     `least_swing` of the absolute value of the median.
// The period is k. A learning rate beyond the edge of stability makes a period of 2 (Cohen et al.,
// 2021).
//
// It is not true while the learning rate itself rises by more than half in these steps: the loss
// follows a cyclic schedule. A loss that changes its sign is not judged: its swing has no scale.
// Source: ours. For white noise the correlation at one lag of 96 points has the standard deviation
// 0.1, so the default of 0.5 is five of them, before the other two conditions.
//
// Needs loss, `points` values. Score: the swing, relative to the level.
// Limits: a period longer than a quarter of 16 times the points, and chaos without a period, are
// not seen.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr double kRateRise = 1.5;
// Values of which one mean is taken.
constexpr size_t kWidths[] = {1, 4, 16};

struct Period {
  size_t lag = 0;  // 0: none.
  double correlation = 0;
};

// The lag of the strongest correlation after the first strong anticorrelation.
Period FindPeriod(absl::Span<const double> rest, const Curves::Oscillating& settings) {
  Period period;
  bool opposed = false;
  for (size_t lag = 1; lag <= rest.size() / 4; ++lag) {
    const double r = Autocorrelation(rest, lag);
    opposed = opposed || r < -settings.anticorrelation();
    if (opposed && r > settings.correlation() && r > period.correlation) period = {lag, r};
  }
  return period;
}

bool InBothHalves(absl::Span<const double> rest, size_t lag, double least) {
  const size_t half = rest.size() / 2;
  return Autocorrelation(rest.subspan(0, half), lag) > least &&
         Autocorrelation(rest.subspan(half), lag) > least;
}

// The means of each `width` of the newest `count` * `width` values; they are there.
std::vector<double> Means(const Curve& curve, size_t count, size_t width) {
  const size_t n = curve.points.size();
  const std::vector<double> values = curve.Values(n - count * width, n);
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); i += width) {
    double sum = 0;
    for (size_t k = i; k < i + width; ++k) sum += values[k];
    means.push_back(sum / static_cast<double>(width));
  }
  return means;
}

Finding OfSwing(const Curve& curve, const CurvePoint& first, double swing, double level,
                const Period& period, size_t width, const Curves::Oscillating& settings) {
  const size_t values = period.lag * width;
  Finding finding =
      Present(Severity::kWarning, "LossOscillates",
              absl::StrCat(curve.metric, " swings by ", ValueText(swing), " around ",
                           ValueText(level), " with a period of ", width > 1 ? "about " : "",
                           values, " values, since step ", first.step, " or earlier"));
  finding.since_ns = first.time_ns;
  finding.step = first.step;
  finding.figures = {{"swing", swing, "1"},
                     {"level", level, "1"},
                     {"threshold", settings.least_swing() * level, "1"},
                     {"period_points", static_cast<double>(values), "1"},
                     {"correlation", period.correlation, "1"}};
  finding.BlameMetric(curve.metric, first.step, swing / level);
  return finding;
}

Finding DetectAt(size_t width, const JobWindow& window, const Curve& curve,
                 const Curves::Oscillating& settings) {
  const std::vector<double> values = Means(curve, settings.points(), width);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool sign_changes = *low < 0 && *high > 0;
  const std::vector<double> rest = OffRunningMedian(values, values.size() / 4 + 1);
  const double level = std::abs(Median(values));
  const double swing = (Quantile(rest, 0.9) - Quantile(rest, 0.1)) / 2;
  if (sign_changes || !(swing > settings.least_swing() * level)) return NotPresent();
  const Period period = FindPeriod(rest, settings);
  if (period.lag == 0 || !InBothHalves(rest, period.lag, settings.correlation() / 2)) {
    return NotPresent();
  }
  const CurvePoint& first = curve.points[curve.points.size() - settings.points() * width];
  if (LearningRateRose(window, first.step, curve.points.back().step, kRateRise)) {
    return NotPresent();
  }
  return OfSwing(curve, first, swing, level, period, width, settings);
}

}  // namespace

Finding DetectOscillating(const JobWindow& window, const Curves::Oscillating& settings) {
  const Curve curve = JobCurve(window, Signal::kLoss);
  if (curve.points.size() < settings.points()) return NotJudged();
  for (const size_t width : kWidths) {
    if (curve.points.size() < settings.points() * width) break;
    Finding finding = DetectAt(width, window, curve, settings);
    if (finding.present) return finding;
  }
  return NotPresent();
}

}  // namespace tacho::server::conditions

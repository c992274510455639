#include "server/conditions/detectors/oscillating.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr double kRateRise = 1.5;

struct Period {
  size_t lag = 0;  // 0: there is none.
  double correlation = 0;
};

// The lag of the strongest correlation after the first strong anticorrelation.
Period FindPeriod(absl::Span<const double> rest, const OscillatingSettings& settings) {
  Period period;
  bool opposed = false;
  for (size_t lag = 1; lag <= rest.size() / 4; ++lag) {
    const double r = Autocorrelation(rest, lag);
    opposed = opposed || r < -settings.anticorrelation;
    if (opposed && r > settings.correlation && r > period.correlation) period = {lag, r};
  }
  return period;
}

bool InBothHalves(absl::Span<const double> rest, size_t lag, double least) {
  const size_t half = rest.size() / 2;
  return Autocorrelation(rest.subspan(0, half), lag) > least &&
         Autocorrelation(rest.subspan(half), lag) > least;
}

}  // namespace

Finding DetectOscillating(const JobWindow& window, const OscillatingSettings& settings) {
  const Curve curve = JobCurve(window, Signal::kLoss);
  const size_t n = curve.points.size();
  if (n < settings.points) return NotJudged();
  const std::vector<double> values = curve.Values(n - settings.points, n);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool sign_changes = *low < 0 && *high > 0;
  const std::vector<double> rest = OffRunningMedian(values, values.size() / 4 + 1);
  const double level = std::abs(Median(values));
  const double swing = (Quantile(rest, 0.9) - Quantile(rest, 0.1)) / 2;
  if (sign_changes || !(swing > settings.least_swing * level)) return NotPresent();
  const Period period = FindPeriod(rest, settings);
  if (period.lag == 0 || !InBothHalves(rest, period.lag, settings.correlation / 2)) {
    return NotPresent();
  }
  const CurvePoint& first = curve.points[n - settings.points];
  if (LearningRateRose(window, first.step, curve.points.back().step, kRateRise)) {
    return NotPresent();
  }
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kWarning;
  finding.reason = "LossOscillates";
  finding.since_ns = first.time_ns;
  finding.step = first.step;
  finding.message = absl::StrCat(curve.metric, " swings by ", ValueText(swing), " about ",
                                 ValueText(level), " with a period of ", period.lag,
                                 " values, since step ", first.step, " or before");
  finding.figures = {{"swing", swing, "1"},
                     {"level", level, "1"},
                     {"threshold", settings.least_swing * level, "1"},
                     {"period_points", static_cast<double>(period.lag), "1"},
                     {"correlation", period.correlation, "1"}};
  Culprit culprit;
  culprit.metric = curve.metric;
  culprit.step = first.step;
  culprit.score = swing / level;
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

}  // namespace tacho::server::conditions

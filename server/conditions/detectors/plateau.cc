// Plateau: if training goes on like this, the loss will not improve enough to matter.
//
// Definition. The newest `share` of the recorded steps is cut into `bins` stretches of equally many
// steps; each counts with the median of its losses. A line is fitted to the medians over the
// logarithm of the step. Training losses fall about as a power of the step (Kaplan et al., "Scaling
// Laws for Neural Language Models", 2020; Hestness et al. 2017), which over a factor of two in
// steps is a straight line to within the noise. The line is extrapolated to the planned step (the
// attribute planned_steps; without it, `horizon` times the newest step). It gives the expected
// improvement, and the standard error of its slope, widened for correlation, gives the uncertainty:
//   improvement = -slope × ln(horizon step / newest step),  ± 2 × error of the slope × the same ln.
// The condition is true if the improvement is less than `least_improvement` of the loss, and the
// upper end of its interval less than `most_improvement` (of the range of the loss in the window,
// if it changes its sign).
//
// It is not judged before `least_points` values and `least_steps` steps. It is not true while the
// learning rate still rises (warm-up), in the last `end_share` of the planned steps, or with a
// learning rate below `end_rate` of the highest in the window: then the schedule is at its end.
// Without a training loss the evaluation loss counts.
//
// The reason is LossRises if the interval lies below zero. Figures are in units of the loss.
// Limits: a schedule that cuts the learning rate later makes the loss fall more than a line
// predicts; a noisy loss, such as that of reinforcement learning, has too wide an interval to be
// called flat.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "proto/base/saturate.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr double kInterval = 2;  // Standard errors: about 95 %.

struct Bins {
  std::vector<double> log_steps;
  std::vector<double> values;
};

// The curve from `first_step` on, which is not after its last step.
Bins BinsOf(const Curve& curve, int64_t first_step, uint32_t count) {
  Bins bins;
  TACHO_CHECK(!curve.points.empty() && count > 0);
  const int64_t last = curve.points.back().step;
  const double width = (static_cast<double>(last - first_step) + 1) / count;
  std::vector<double> values;
  double steps = 0;
  uint32_t bin = 0;
  const auto close = [&] {
    if (values.empty()) return;
    // + 1: steps are counted from 0.
    bins.log_steps.push_back(std::log(steps / static_cast<double>(values.size()) + 1));
    bins.values.push_back(Median(std::move(values)));
    values.clear();
    steps = 0;
  };
  for (const CurvePoint& point : curve.points) {
    if (point.step < first_step) continue;
    const auto at = SaturatingCast<uint32_t>(static_cast<double>(point.step - first_step) / width);
    if (at != bin) close();
    bin = at;
    values.push_back(point.value);
    steps += static_cast<double>(point.step);
  }
  close();
  return bins;
}

std::optional<int64_t> PlannedSteps(const JobWindow& window) {
  const auto found = window.attributes.find("planned_steps");
  int64_t steps = 0;
  if (found == window.attributes.end() || !absl::SimpleAtoi(found->second, &steps)) {
    return std::nullopt;
  }
  return steps > 0 ? std::optional<int64_t>(steps) : std::nullopt;
}

// Whether the learning rate explains a flat loss: it still rises, or the schedule is at its end.
bool RateExplains(const JobWindow& window, int64_t middle, const Curves::Plateau& settings) {
  const Curve rate = JobCurve(window, Signal::kLearningRate);
  if (rate.points.empty()) return false;
  const double now = rate.points.back().value;
  double highest = now;
  double at_middle = now;
  for (const CurvePoint& point : rate.points) {
    highest = std::max(highest, point.value);
    if (point.step <= middle) at_middle = point.value;
  }
  return now > 1.05 * at_middle || now < settings.end_rate() * highest;
}

struct Expectation {
  double horizon = 0;  // Step.
  double improvement = 0;
  double low = 0;
  double high = 0;
  double loss = 0;  // The value of the line now.
};

std::optional<Expectation> Extrapolate(const Bins& bins, int64_t now_step, double horizon) {
  const Line line = FitLine(bins.log_steps, bins.values);
  if (!line.valid) return std::nullopt;
  const double now = std::log(static_cast<double>(now_step) + 1);
  const double reach = std::log(horizon + 1) - now;
  Expectation expected;
  expected.horizon = horizon;
  expected.improvement = -line.slope * reach;
  expected.low = expected.improvement - kInterval * line.slope_error * reach;
  expected.high = expected.improvement + kInterval * line.slope_error * reach;
  expected.loss = line.At(now);
  return expected;
}

// The scale that an improvement is compared with.
double ScaleOf(const Curve& curve, double loss) {
  const std::vector<double> all = curve.Values(0, curve.points.size());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  if (*low < 0 && *high > 0) return Quantile(all, 0.95) - Quantile(all, 0.05);
  return std::abs(loss);
}

Finding OfExpectation(const Curve& curve, int64_t since, const Expectation& expected,
                      double threshold) {
  Finding finding =
      Present(Severity::kInfo, expected.high < 0 ? "LossRises" : "NoImprovementExpected",
              absl::StrCat(curve.metric, " is about ", ValueText(expected.loss),
                           ". At its pace since step ", since, " it would improve by ",
                           ValueText(expected.improvement), " (95 %: ", ValueText(expected.low),
                           " to ", ValueText(expected.high), ") by step ",
                           SaturatingCast<int64_t>(expected.horizon)));
  finding.step = since;
  const auto at = std::find_if(curve.points.begin(), curve.points.end(),
                               [&](const CurvePoint& point) { return point.step >= since; });
  TACHO_CHECK(at != curve.points.end());
  finding.since_ns = at->time_ns;
  finding.figures = {{"loss", expected.loss, "1"},
                     {"expected_improvement", expected.improvement, "1"},
                     {"expected_improvement_low", expected.low, "1"},
                     {"expected_improvement_high", expected.high, "1"},
                     {"threshold", threshold, "1"},
                     {"horizon_step", expected.horizon, "1"}};
  finding.BlameMetric(curve.metric, since);
  return finding;
}

}  // namespace

Finding DetectPlateau(const JobWindow& window, const Curves::Plateau& settings) {
  Curve curve = JobCurve(window, Signal::kLoss);
  if (curve.points.empty()) curve = JobCurve(window, Signal::kEvalLoss);
  if (window.ended || curve.points.size() < settings.least_points()) return NotJudged();
  const int64_t now = curve.points.back().step;
  const int64_t span = now - curve.points.front().step;
  if (now < settings.least_steps() || span <= 0) return NotJudged();
  const std::optional<int64_t> planned = PlannedSteps(window);
  const double horizon =
      planned ? static_cast<double>(*planned) : settings.horizon() * static_cast<double>(now);
  if (static_cast<double>(now) > (1 - settings.end_share()) * horizon) return NotPresent();
  const int64_t since = now - SaturatingCast<int64_t>(settings.share() * static_cast<double>(span));
  if (RateExplains(window, since, settings)) return NotPresent();
  const auto expected = Extrapolate(BinsOf(curve, since, settings.bins()), now, horizon);
  if (!expected) return NotJudged();
  const double scale = ScaleOf(curve, expected->loss);
  const double threshold = settings.least_improvement() * scale;
  const double most = settings.most_improvement() * scale;
  if (!(expected->improvement < threshold && expected->high < most)) return NotPresent();
  return OfExpectation(curve, since, *expected, threshold);
}

}  // namespace tacho::server::conditions

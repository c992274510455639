#include "server/conditions/detectors/plateau.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr double kInterval = 2;  // Standard errors: about 95 %.

struct Bins {
  std::vector<double> log_steps;
  std::vector<double> values;
};

// The curve from `first_step` on.
Bins BinsOf(const Curve& curve, int64_t first_step, uint32_t count) {
  Bins bins;
  const int64_t last = curve.points.back().step;
  const double width = static_cast<double>(last - first_step + 1) / count;
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
    const auto at = static_cast<uint32_t>(static_cast<double>(point.step - first_step) / width);
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

// The learning rate says that it is too early or too late to expect the loss to fall.
bool RateExplains(const JobWindow& window, int64_t middle, const PlateauSettings& settings) {
  const Curve rate = JobCurve(window, Signal::kLearningRate);
  if (rate.points.empty()) return false;
  const double now = rate.points.back().value;
  double highest = now;
  double at_middle = now;
  for (const CurvePoint& point : rate.points) {
    highest = std::max(highest, point.value);
    if (point.step <= middle) at_middle = point.value;
  }
  return now > 1.05 * at_middle || now < settings.end_rate * highest;
}

struct Expectation {
  double horizon = 0;  // Step.
  double improvement = 0;
  double low = 0;
  double high = 0;
  double loss = 0;  // Of the line, now.
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

// What an improvement is held against.
double ScaleOf(const Curve& curve, double loss) {
  const std::vector<double> all = curve.Values(0, curve.points.size());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  if (*low < 0 && *high > 0) return Quantile(all, 0.95) - Quantile(all, 0.05);
  return std::abs(loss);
}

Finding OfExpectation(const Curve& curve, int64_t since, const Expectation& expected,
                      double threshold) {
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kInfo;
  finding.reason = expected.high < 0 ? "LossRises" : "NoImprovementExpected";
  finding.step = since;
  const auto at = std::find_if(curve.points.begin(), curve.points.end(),
                               [&](const CurvePoint& point) { return point.step >= since; });
  finding.since_ns = at->time_ns;
  finding.message =
      absl::StrCat(curve.metric, " is about ", ValueText(expected.loss), " and would improve by ",
                   ValueText(expected.improvement), " (95 %: ", ValueText(expected.low), " to ",
                   ValueText(expected.high), ") until step ",
                   static_cast<int64_t>(expected.horizon), " as it has gone since step ", since);
  finding.figures = {{"loss", expected.loss, "1"},
                     {"expected_improvement", expected.improvement, "1"},
                     {"expected_improvement_low", expected.low, "1"},
                     {"expected_improvement_high", expected.high, "1"},
                     {"threshold", threshold, "1"},
                     {"horizon_step", expected.horizon, "1"}};
  Culprit culprit;
  culprit.metric = curve.metric;
  culprit.step = since;
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

}  // namespace

Finding DetectPlateau(const JobWindow& window, const PlateauSettings& settings) {
  Curve curve = JobCurve(window, Signal::kLoss);
  if (curve.points.empty()) curve = JobCurve(window, Signal::kEvalLoss);
  if (window.ended || curve.points.size() < settings.least_points) return NotJudged();
  const int64_t now = curve.points.back().step;
  const int64_t span = now - curve.points.front().step;
  if (now < settings.least_steps || span <= 0) return NotJudged();
  const std::optional<int64_t> planned = PlannedSteps(window);
  const double horizon =
      planned ? static_cast<double>(*planned) : settings.horizon * static_cast<double>(now);
  if (static_cast<double>(now) > (1 - settings.end_share) * horizon) return NotPresent();
  const int64_t since = now - static_cast<int64_t>(settings.share * static_cast<double>(span));
  if (RateExplains(window, since, settings)) return NotPresent();
  const auto expected = Extrapolate(BinsOf(curve, since, settings.bins), now, horizon);
  if (!expected) return NotJudged();
  const double scale = ScaleOf(curve, expected->loss);
  const double threshold = settings.least_improvement * scale;
  const double most = settings.most_improvement * scale;
  if (!(expected->improvement < threshold && expected->high < most)) return NotPresent();
  return OfExpectation(curve, since, *expected, threshold);
}

}  // namespace tacho::server::conditions

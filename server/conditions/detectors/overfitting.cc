#include "server/conditions/detectors/overfitting.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

// What is minimised: a loss, or an accuracy with its sign turned.
struct Pair {
  Curve eval;
  Curve train;
  const char* reason;
  bool negated = false;
};

void Negate(Curve* curve) {
  for (CurvePoint& point : curve->points) point.value = -point.value;
}

bool IsAccuracy(const Curve& curve) {
  return std::all_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& point) { return point.value >= 0 && point.value <= 1; });
}

std::vector<Pair> PairsOf(const JobWindow& window) {
  std::vector<Pair> pairs;
  const Curve train = JobCurve(window, Signal::kLoss);
  for (Curve& eval : JobCurves(window, Signal::kEvalLoss)) {
    if (!train.points.empty()) pairs.push_back({std::move(eval), train, "EvalLossRises"});
  }
  if (!pairs.empty()) return pairs;
  Curve accuracy = JobCurve(window, Signal::kAccuracy);
  if (accuracy.points.empty() || !IsAccuracy(accuracy)) return pairs;
  Negate(&accuracy);
  for (Curve& eval : JobCurves(window, Signal::kEvalAccuracy)) {
    if (!IsAccuracy(eval)) continue;
    Negate(&eval);
    pairs.push_back({std::move(eval), accuracy, "EvalAccuracyFalls", true});
  }
  return pairs;
}

std::vector<double> Smoothed(const Curve& curve) {
  std::vector<double> smooth;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const size_t first = i < 1 ? 0 : i - 1;
    smooth.push_back(Median(curve.Values(first, std::min(i + 2, curve.points.size()))));
  }
  return smooth;
}

double Noise(const Curve& curve) {
  std::vector<double> differences;
  for (size_t i = 1; i < curve.points.size(); ++i) {
    differences.push_back(curve.points[i].value - curve.points[i - 1].value);
  }
  return ScaledMad(differences, Median(differences)) / std::sqrt(2.0);
}

// The training metric around evaluation i: since the one before it.
std::optional<double> TrainAt(const Pair& pair, size_t i) {
  const int64_t step = pair.eval.points[i].step;
  const int64_t before = pair.eval.points[i == 0 ? 0 : i - 1].step;
  std::vector<double> values = pair.train.ValuesOfSteps(before, step);
  if (values.empty()) return std::nullopt;
  return Median(std::move(values));
}

Finding OfPair(const Pair& pair, size_t best, double best_value, double now, double threshold) {
  const double sign = pair.negated ? -1 : 1;
  const CurvePoint& point = pair.eval.points[best];
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kWarning;
  finding.reason = pair.reason;
  finding.since_ns = point.time_ns;
  finding.step = point.step;
  const double train_then = sign * TrainAt(pair, best).value_or(0);
  const double train_now = sign * TrainAt(pair, pair.eval.points.size() - 1).value_or(0);
  finding.message = absl::StrCat(pair.eval.metric, " was best at step ", point.step, " with ",
                                 ValueText(sign * best_value), " and is ", ValueText(sign * now),
                                 " now, while ", pair.train.metric, " went from ",
                                 ValueText(train_then), " to ", ValueText(train_now));
  finding.figures = {
      {"best", sign * best_value, "1"},
      {"newest", sign * now, "1"},
      {"threshold", sign * threshold, "1"},
      {"train_at_best", train_then, "1"},
      {"train_newest", train_now, "1"},
      {"evaluations_since_best", static_cast<double>(pair.eval.points.size() - 1 - best), "1"}};
  Culprit culprit;
  culprit.metric = pair.eval.metric;
  culprit.step = point.step;
  culprit.score = best_value == 0 ? now : (now - best_value) / std::abs(best_value);
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

Finding Judge(const Pair& pair, const OverfittingSettings& settings) {
  const size_t n = pair.eval.points.size();
  if (n < std::max(settings.least_evaluations, settings.patience + 1)) return NotJudged();
  const std::vector<double> smooth = Smoothed(pair.eval);
  const auto best =
      static_cast<size_t>(std::min_element(smooth.begin(), smooth.end()) - smooth.begin());
  const std::optional<double> train_then = TrainAt(pair, best);
  const std::optional<double> train_now = TrainAt(pair, n - 1);
  if (!train_then || !train_now) return NotJudged();
  if (n - 1 - best < settings.patience) return NotPresent();
  const double now = Median(pair.eval.Values(n - settings.patience, n));
  const double threshold = smooth[best] + std::max(settings.least_rise * std::abs(smooth[best]),
                                                   settings.sigmas * Noise(pair.eval));
  if (!(now > threshold) || *train_now > *train_then) return NotPresent();
  return OfPair(pair, best, smooth[best], now, threshold);
}

}  // namespace

Finding DetectOverfitting(const JobWindow& window, const OverfittingSettings& settings) {
  Finding result = NotJudged();
  for (const Pair& pair : PairsOf(window)) {
    Finding finding = Judge(pair, settings);
    const bool worse = finding.present && (!result.present || finding.culprits.front().score >
                                                                  result.culprits.front().score);
    if (worse || (finding.judged && !result.judged)) result = std::move(finding);
  }
  return result;
}

}  // namespace tacho::server::conditions

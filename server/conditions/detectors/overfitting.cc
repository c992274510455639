// Overfitting: the model gets worse on held-out data while it gets better on its training data.
//
// Definition. For each metric of evaluation loss, smoothed by the median of 3:
//   - the best value is at least `patience` evaluations old;
//   - the median of the newest `patience` is above it by more than `least_rise` of it, and by more
//     than `sigmas` standard deviations of the noise (1.4826 MAD of the differences of neighbours,
//     over √2);
//   - the training loss, as the median between two evaluations, is not above its value at the best
//     evaluation.
// Without an evaluation loss, evaluation accuracy is compared with training accuracy, with falls
// for rises. A metric with values outside 0..1 is no accuracy, and does not count. Source: early
// stopping, as in Prechelt, "Early Stopping - but when?" (1998), generalisation loss with patience.
// The rule about the training loss is ours: if that rises too, the cause is another.
//
// Needs `least_evaluations` evaluations, and the training metric. Step: the best evaluation, whose
// checkpoint to take. Score: the rise relative to the best value.
// Limits: evaluation loss may rise while accuracy still improves (overconfidence); this is
// reported.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

// Curves to minimise: losses, or accuracies with their sign turned.
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

// The median of the training metric between evaluation i and the one before it.
std::optional<double> TrainAt(const Pair& pair, size_t i) {
  TACHO_CHECK(i < pair.eval.points.size());
  const int64_t step = pair.eval.points[i].step;
  const int64_t before = pair.eval.points[i == 0 ? 0 : i - 1].step;
  std::vector<double> values = pair.train.ValuesOfSteps(before, step);
  if (values.empty()) return std::nullopt;
  return Median(std::move(values));
}

Finding OfPair(const Pair& pair, size_t best, double best_value, double now, double threshold) {
  const double sign = pair.negated ? -1 : 1;
  const CurvePoint& point = pair.eval.points[best];
  const double train_then = sign * TrainAt(pair, best).value_or(0);
  const double train_now = sign * TrainAt(pair, pair.eval.points.size() - 1).value_or(0);
  Finding finding =
      Present(Severity::kWarning, pair.reason,
              absl::StrCat(pair.eval.metric, " was best at step ", point.step, " with ",
                           ValueText(sign * best_value), " and is now ", ValueText(sign * now),
                           ", while ", pair.train.metric, " went from ", ValueText(train_then),
                           " to ", ValueText(train_now)));
  finding.since_ns = point.time_ns;
  finding.step = point.step;
  finding.figures = {
      {"best", sign * best_value, "1"},
      {"newest", sign * now, "1"},
      {"threshold", sign * threshold, "1"},
      {"train_at_best", train_then, "1"},
      {"train_newest", train_now, "1"},
      {"evaluations_since_best", static_cast<double>(pair.eval.points.size() - 1 - best), "1"}};
  finding.BlameMetric(pair.eval.metric, point.step,
                      best_value == 0 ? now : (now - best_value) / std::abs(best_value));
  return finding;
}

Finding Judge(const Pair& pair, const Curves::Overfitting& settings) {
  const size_t n = pair.eval.points.size();
  if (n < std::max(settings.least_evaluations(), settings.patience() + 1)) return NotJudged();
  const std::vector<double> smooth = Smoothed(pair.eval);
  const auto best =
      static_cast<size_t>(std::min_element(smooth.begin(), smooth.end()) - smooth.begin());
  const std::optional<double> train_then = TrainAt(pair, best);
  const std::optional<double> train_now = TrainAt(pair, n - 1);
  if (!train_then || !train_now) return NotJudged();
  if (n - 1 - best < settings.patience()) return NotPresent();
  const double now = Median(pair.eval.Values(n - settings.patience(), n));
  const double threshold = smooth[best] + std::max(settings.least_rise() * std::abs(smooth[best]),
                                                   settings.sigmas() * Noise(pair.eval));
  if (!(now > threshold) || *train_now > *train_then) return NotPresent();
  return OfPair(pair, best, smooth[best], now, threshold);
}

}  // namespace

Finding DetectOverfitting(const JobWindow& window, const Curves::Overfitting& settings) {
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

// WeightsFrozen: training goes on, but the weights do not change.
//
// Definition. Over the newest `values` recorded steps, with a learning rate above 0 at each of them
// (and above `end_rate` of the highest in the window):
//   update_norm, where it is recorded, is 0, or update_norm / param_norm is at most `share`;
//   otherwise param_norm has exactly the same bits at all of them, on tasks that record it.
// One task is enough; the task that is frozen longest is named first. About `share`: adding less
// than 2^-24 = 6e-8 of a float32 to it changes nothing (IEEE 754 rounding). Source: ours; the ratio
// of updates to weights is usually about 1e-3 (Karpathy, cs231n notes on babysitting the learning
// process).
//
// Needs update_norm or param_norm. Without a learning rate only exact zeros and equal bits count.
// Critical: every second is wasted. Score: the number of recorded steps.
// Limits: a norm that is logged with few digits stands still while the weights move; more than
// `values` equal ones in a row are unlikely unless the learning rate is very low.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"

namespace tacho::server::conditions {
namespace {

struct Stretch {
  const TaskWindow* task = nullptr;
  const char* reason = nullptr;
  std::string metric;
  size_t values = 0;
  Point since;
};

std::vector<Point> PointsOf(const TaskWindow& task, Signal signal) {
  const Track* track = FindTrack(task.tracks, signal);
  return track == nullptr ? std::vector<Point>() : EffectivePoints(track->points);
}

// The value at the newest step that is not after `step`; 0 if there is none.
double ValueAt(const std::vector<Point>& points, int64_t step) {
  const auto after =
      std::upper_bound(points.begin(), points.end(), step,
                       [](int64_t wanted, const Point& point) { return wanted < point.step; });
  return after == points.begin() ? 0 : (after - 1)->value;
}

// The newest stretch of updates that change nothing.
Stretch OfUpdates(const TaskWindow& task, double share) {
  Stretch stretch{.task = &task, .reason = "UpdatesZero"};
  const Track* track = FindTrack(task.tracks, Signal::kUpdateNorm);
  if (track == nullptr) return stretch;
  stretch.metric = track->metric;
  const std::vector<Point> updates = EffectivePoints(track->points);
  const std::vector<Point> weights = PointsOf(task, Signal::kParamNorm);
  for (auto point = updates.rbegin(); point != updates.rend(); ++point) {
    const double least = share * ValueAt(weights, point->step);
    if (!(point->value == 0 || point->value <= least)) break;
    if (point->value != 0) stretch.reason = "UpdatesTooSmall";
    ++stretch.values;
    stretch.since = *point;
  }
  return stretch;
}

Stretch OfWeights(const TaskWindow& task) {
  Stretch stretch{.task = &task, .reason = "ParameterNormConstant"};
  const Track* track = FindTrack(task.tracks, Signal::kParamNorm);
  if (track == nullptr) return stretch;
  stretch.metric = track->metric;
  const std::vector<Point> weights = EffectivePoints(track->points);
  for (auto point = weights.rbegin(); point != weights.rend(); ++point) {
    if (!std::isfinite(point->value) || point->value != weights.back().value) break;
    ++stretch.values;
    stretch.since = *point;
  }
  return stretch;
}

// Whether the learning rate has been high enough since that step for the weights to change.
bool Learns(const JobWindow& window, int64_t since, double end_rate) {
  const Curve rate = JobCurve(window, Signal::kLearningRate);
  double highest = 0;
  double least = rate.points.empty() ? 1 : rate.points.back().value;
  for (const CurvePoint& point : rate.points) {
    highest = std::max(highest, point.value);
    if (point.step >= since) least = std::min(least, point.value);
  }
  return least > 0 && least >= end_rate * highest;
}

Finding OfStretches(const std::vector<Stretch>& stretches) {
  TACHO_CHECK(!stretches.empty());
  const Stretch& first = stretches.front();
  Finding finding = Present(
      Severity::kCritical, first.reason,
      absl::StrCat(first.metric, " has been ", ValueText(first.since.value), " for ", first.values,
                   " recorded steps, since step ", first.since.step, "; ", stretches.size(),
                   stretches.size() == 1 ? " task is" : " tasks are", " affected"));
  finding.since_ns = first.since.time_ns;
  finding.step = first.since.step;
  finding.figures = {{"value", first.since.value, "1"},
                     {"recorded_steps", static_cast<double>(first.values), "1"},
                     {"tasks", static_cast<double>(stretches.size()), "1"}};
  for (const Stretch& stretch : stretches) {
    finding.BlameTask(*stretch.task, static_cast<double>(stretch.values), stretch.since.step,
                      stretch.metric);
  }
  return finding;
}

}  // namespace

Finding DetectWeightsFrozen(const JobWindow& window, const Curves::WeightsFrozen& settings) {
  bool judged = false;
  std::vector<Stretch> stretches;
  for (const TaskWindow& task : window.tasks) {
    const bool has_updates = FindTrack(task.tracks, Signal::kUpdateNorm) != nullptr;
    if (!has_updates && FindTrack(task.tracks, Signal::kParamNorm) == nullptr) continue;
    judged = true;
    Stretch stretch = has_updates ? OfUpdates(task, settings.share()) : OfWeights(task);
    if (stretch.values >= settings.values()) stretches.push_back(std::move(stretch));
  }
  if (!judged) return NotJudged();
  if (stretches.empty()) return NotPresent();
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.values > b.values; });
  const TaskWindow& first = *stretches.front().task;
  const Signal signal = FindTrack(first.tracks, Signal::kUpdateNorm) != nullptr
                            ? Signal::kUpdateNorm
                            : Signal::kParamNorm;
  const std::vector<Point> points = PointsOf(first, signal);
  // Only the newest values count: a rate of 0 early in a long stretch explains nothing now.
  TACHO_CHECK(settings.values() <= points.size());
  const int64_t since = points[points.size() - settings.values()].step;
  if (!Learns(window, since, settings.end_rate())) return NotPresent();
  return OfStretches(stretches);
}

}  // namespace tacho::server::conditions

#include "server/conditions/detectors/weights_frozen.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// How long the newest updates have been nothing.
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

// Whether the learning rate is such, since then, that weights should change.
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
  const Stretch& first = stretches.front();
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kCritical;
  finding.reason = first.reason;
  finding.since_ns = first.since.time_ns;
  finding.step = first.since.step;
  finding.message = absl::StrCat(first.metric, " has been ", ValueText(first.since.value), " for ",
                                 first.values, " recorded steps, since step ", first.since.step,
                                 ", on ", stretches.size(), " tasks");
  finding.figures = {{"value", first.since.value, "1"},
                     {"recorded_steps", static_cast<double>(first.values), "1"},
                     {"tasks", static_cast<double>(stretches.size()), "1"}};
  for (const Stretch& stretch : stretches) {
    if (finding.culprits.size() == kMaxCulprits) break;
    Culprit culprit;
    culprit.task = stretch.task->task;
    culprit.host = stretch.task->host;
    culprit.metric = stretch.metric;
    culprit.step = stretch.since.step;
    culprit.score = static_cast<double>(stretch.values);
    finding.culprits.push_back(std::move(culprit));
  }
  return finding;
}

}  // namespace

Finding DetectWeightsFrozen(const JobWindow& window, const WeightsFrozenSettings& settings) {
  bool judged = false;
  std::vector<Stretch> stretches;
  for (const TaskWindow& task : window.tasks) {
    const bool has_updates = FindTrack(task.tracks, Signal::kUpdateNorm) != nullptr;
    if (!has_updates && FindTrack(task.tracks, Signal::kParamNorm) == nullptr) continue;
    judged = true;
    Stretch stretch = has_updates ? OfUpdates(task, settings.share) : OfWeights(task);
    if (stretch.values >= settings.values) stretches.push_back(std::move(stretch));
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
  // Of the newest values only: a rate of 0 at the first of a long stretch explains nothing now.
  const int64_t since = points[points.size() - settings.values].step;
  if (!Learns(window, since, settings.end_rate)) return NotPresent();
  return OfStretches(stretches);
}

}  // namespace tacho::server::conditions

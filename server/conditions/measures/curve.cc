// Makes one curve out of the tracks of many tasks: steps that a restart repeats count once, with
// their later values, and the tasks of a step count with their median, so that one odd task does
// not bend the curve of the job.
#include "server/conditions/measures/curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"

namespace tacho::server::conditions {
namespace {

std::vector<Point> Numbered(std::vector<Point> points) {
  for (size_t i = 0; i < points.size(); ++i) points[i].step = static_cast<int64_t>(i);
  return points;
}

// Whether training restarts at points[i], rather than points[i] alone being out of order. `kept` is
// not empty.
bool Restarts(const std::vector<Point>& points, size_t i, const std::vector<Point>& kept) {
  TACHO_CHECK(!kept.empty());
  return i + 1 < points.size() && points[i + 1].step != kNoPointStep &&
         points[i + 1].step >= points[i].step && points[i + 1].step <= kept.back().step;
}

const Track* FindMetric(const Tracks& tracks, Signal signal, const std::string& metric) {
  const auto found = tracks.find(signal);
  if (found == tracks.end()) return nullptr;
  for (const Track& track : found->second) {
    if (track.metric == metric && !track.empty()) return &track;
  }
  return nullptr;
}

std::vector<const Track*> TracksOf(const JobWindow& window, Signal signal,
                                   const std::string& metric) {
  std::vector<const Track*> all;
  for (const TaskWindow& task : window.tasks) {
    if (const Track* track = FindMetric(task.tracks, signal, metric)) all.push_back(track);
  }
  if (all.size() <= kMaxCurveTasks) return all;
  std::vector<const Track*> some;
  for (size_t i = 0; i < kMaxCurveTasks; ++i) some.push_back(all[i * all.size() / kMaxCurveTasks]);
  return some;
}

// Ascending by step; points of one step become their median.
std::vector<CurvePoint> MedianBySteps(std::vector<CurvePoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
  std::vector<CurvePoint> merged;
  for (size_t i = 0; i < points.size();) {
    std::vector<double> values;
    CurvePoint point = points[i];
    for (; i < points.size() && points[i].step == point.step; ++i) {
      values.push_back(points[i].value);
      point.time_ns = std::max(point.time_ns, points[i].time_ns);
    }
    point.value = Median(std::move(values));
    merged.push_back(point);
  }
  return merged;
}

Curve CurveOf(const JobWindow& window, Signal signal, const std::string& metric) {
  Curve curve{.metric = metric, .points = {}};
  const std::vector<const Track*> tracks = TracksOf(window, signal, metric);
  for (const Track* track : tracks) {
    for (const Point& point : EffectivePoints(track->points)) {
      if (!std::isfinite(point.value)) continue;
      curve.points.push_back({point.step, point.time_ns, point.value});
    }
  }
  if (tracks.size() > 1) curve.points = MedianBySteps(std::move(curve.points));
  return curve;
}

}  // namespace

std::vector<double> Curve::Values(size_t first, size_t last) const {
  TACHO_CHECK(first <= last && last <= points.size());
  std::vector<double> values;
  values.reserve(last - first);
  for (size_t i = first; i < last; ++i) values.push_back(points[i].value);
  return values;
}

std::vector<double> Curve::ValuesOfSteps(int64_t first, int64_t last) const {
  std::vector<double> values;
  for (const CurvePoint& point : points) {
    if (point.step >= first && point.step <= last) values.push_back(point.value);
  }
  return values;
}

std::vector<Point> EffectivePoints(const std::vector<Point>& points) {
  const bool steps = std::any_of(points.begin(), points.end(),
                                 [](const Point& point) { return point.step != kNoPointStep; });
  if (!steps) return Numbered(points);
  std::vector<Point> kept;
  kept.reserve(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    if (point.step == kNoPointStep) continue;
    if (!kept.empty() && point.step < kept.back().step) {
      if (!Restarts(points, i, kept)) continue;
      while (!kept.empty() && kept.back().step > point.step) kept.pop_back();
    }
    if (!kept.empty() && kept.back().step == point.step) kept.pop_back();
    kept.push_back(point);
  }
  return kept;
}

Curve JobCurve(const JobWindow& window, Signal signal) {
  for (const TaskWindow& task : window.tasks) {
    if (const Track* track = FindTrack(task.tracks, signal)) {
      return CurveOf(window, signal, track->metric);
    }
  }
  return {};
}

std::vector<Curve> JobCurves(const JobWindow& window, Signal signal) {
  std::vector<Curve> curves;
  std::set<std::string> seen;
  for (const TaskWindow& task : window.tasks) {
    const auto found = task.tracks.find(signal);
    if (found == task.tracks.end()) continue;
    for (const Track& track : found->second) {
      if (track.empty() || !seen.insert(track.metric).second) continue;
      curves.push_back(CurveOf(window, signal, track.metric));
    }
  }
  return curves;
}

bool LearningRateRose(const JobWindow& window, int64_t first_step, int64_t last_step,
                      double factor) {
  double least = std::numeric_limits<double>::infinity();
  for (const CurvePoint& point : JobCurve(window, Signal::kLearningRate).points) {
    if (point.step > last_step) break;
    if (point.step < first_step) {
      least = point.value;  // Its value at first_step, where rates are recorded less often.
      continue;
    }
    if (point.value > factor * least) return true;
    least = std::min(least, point.value);
  }
  return false;
}

std::string ValueText(double value) { return absl::StrFormat("%.6g", value); }

}  // namespace tacho::server::conditions

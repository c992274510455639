// Builds a matrix of tasks and steps from whichever of four signals is recorded, and centers each
// step on the median task. A matrix, because the same steps of all tasks must be compared: a task
// that is at another step is not late.
#include "server/conditions/measures/lateness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "proto/base/quantile.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

size_t TasksWith(const JobWindow& window, Signal signal) {
  return static_cast<size_t>(std::count_if(
      window.tasks.begin(), window.tasks.end(),
      [&](const TaskWindow& task) { return FindTrack(task.tracks, signal) != nullptr; }));
}

LatenessSource ChooseSource(const JobWindow& window) {
  const auto most = [&](Signal signal) {
    return TasksWith(window, signal) * 2 > window.tasks.size();
  };
  if (most(Signal::kCompute)) return LatenessSource::kOwnTime;
  if (most(Signal::kCommWait)) return LatenessSource::kBarrier;
  if (most(Signal::kDataWait)) return LatenessSource::kInput;
  if (most(Signal::kStepTime)) return LatenessSource::kStepTime;
  return LatenessSource::kNone;
}

Signal MainSignal(LatenessSource source) {
  switch (source) {
    case LatenessSource::kOwnTime:
      return Signal::kCompute;
    case LatenessSource::kBarrier:
      return Signal::kCommWait;
    case LatenessSource::kInput:
      return Signal::kDataWait;
    default:
      return Signal::kStepTime;
  }
}

// The newest steps that at least half of the tasks reported, ascending.
std::vector<int64_t> CommonSteps(const JobWindow& window, Signal signal, size_t max_steps) {
  std::vector<int64_t> newest;
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, signal);
    if (track != nullptr) newest.push_back(track->points.back().step);
  }
  if (newest.empty()) return {};
  const int64_t last = UpperMedian(newest);
  std::vector<int64_t> reported;
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, signal);
    if (track == nullptr) continue;
    size_t taken = 0;
    for (auto point = track->points.rbegin(); point != track->points.rend() && taken < max_steps;
         ++point) {
      if (point->step > last || point->step == kNoPointStep) continue;
      reported.push_back(point->step);
      ++taken;
    }
  }
  std::sort(reported.begin(), reported.end());
  std::vector<int64_t> common;
  for (size_t i = reported.size(); i > 0 && common.size() < max_steps;) {
    size_t begin = i - 1;
    while (begin > 0 && reported[begin - 1] == reported[i - 1]) --begin;
    if ((i - begin) * 2 >= newest.size()) common.push_back(reported[begin]);
    i = begin;
  }
  std::reverse(common.begin(), common.end());
  return common;
}

StepMatrix Collect(const JobWindow& window, Signal signal, const std::vector<int64_t>& steps) {
  StepMatrix matrix(window.tasks.size(), steps.size());
  for (size_t task = 0; task < window.tasks.size(); ++task) {
    const Track* track = FindTrack(window.tasks[task].tracks, signal);
    if (track == nullptr) continue;
    size_t column = steps.size();
    for (auto point = track->points.rbegin(); point != track->points.rend() && column > 0;
         ++point) {
      while (column > 0 && steps[column - 1] > point->step) --column;
      if (column == 0) break;
      if (steps[column - 1] == point->step && std::isfinite(point->value)) {
        matrix.at(task, column - 1) = point->value;
      }
    }
  }
  return matrix;
}

// Without a barrier tasks are at different steps, so the newest values of each are compared.
StepMatrix CollectNewest(const JobWindow& window, Signal signal, size_t max_steps) {
  StepMatrix matrix(window.tasks.size(), max_steps);
  for (size_t task = 0; task < window.tasks.size(); ++task) {
    const Track* track = FindTrack(window.tasks[task].tracks, signal);
    if (track == nullptr) continue;
    size_t column = max_steps;
    for (auto point = track->points.rbegin(); point != track->points.rend() && column > 0;
         ++point) {
      if (std::isfinite(point->value)) matrix.at(task, --column) = point->value;
    }
  }
  return matrix;
}

void AddWhereBoth(const StepMatrix& what, StepMatrix* to) {
  for (size_t task = 0; task < to->tasks(); ++task) {
    for (size_t step = 0; step < to->steps(); ++step) {
      if (std::isfinite(what.at(task, step))) to->at(task, step) += what.at(task, step);
    }
  }
}

void Negate(StepMatrix* matrix) {
  for (size_t task = 0; task < matrix->tasks(); ++task) {
    for (size_t step = 0; step < matrix->steps(); ++step) {
      matrix->at(task, step) = -matrix->at(task, step);
    }
  }
}

}  // namespace

StepMatrix::StepMatrix(size_t tasks, size_t steps)
    : tasks_(tasks), steps_(steps), values_(tasks * steps, kNaN) {}

double StepMatrix::Center() {
  std::vector<double> medians;
  std::vector<double> reported;
  for (size_t step = 0; step < steps_; ++step) {
    reported.clear();
    for (size_t task = 0; task < tasks_; ++task) {
      if (std::isfinite(at(task, step))) reported.push_back(at(task, step));
    }
    if (reported.empty()) continue;
    const double median = Median(reported);
    medians.push_back(median);
    for (size_t task = 0; task < tasks_; ++task) at(task, step) -= median;
  }
  return Median(std::move(medians));
}

double StepMatrix::Over(size_t task, size_t begin, size_t end) const {
  std::vector<double> reported;
  for (size_t step = begin; step < end; ++step) {
    if (std::isfinite(at(task, step))) reported.push_back(at(task, step));
  }
  if (reported.empty() || reported.size() * 2 < end - begin) return kNaN;
  return Median(std::move(reported));
}

Lateness MeasureLateness(const JobWindow& window, size_t max_steps) {
  Lateness lateness;
  lateness.source = ChooseSource(window);
  if (lateness.source == LatenessSource::kNone) return lateness;
  const Signal signal = MainSignal(lateness.source);
  lateness.steps = CommonSteps(window, signal, max_steps);
  if (lateness.source == LatenessSource::kStepTime) {
    lateness.late = CollectNewest(window, signal, lateness.steps.size());
    lateness.typical = lateness.late.Center();
    lateness.input = lateness.barrier = StepMatrix(window.tasks.size(), lateness.steps.size());
    return lateness;
  }
  lateness.late = Collect(window, signal, lateness.steps);
  lateness.input = Collect(window, Signal::kDataWait, lateness.steps);
  lateness.barrier = Collect(window, Signal::kCommWait, lateness.steps);
  if (lateness.source == LatenessSource::kOwnTime) AddWhereBoth(lateness.input, &lateness.late);
  if (lateness.source == LatenessSource::kBarrier) Negate(&lateness.late);
  Negate(&lateness.barrier);
  lateness.typical = lateness.late.Center();
  lateness.input.Center();
  lateness.barrier.Center();
  if (lateness.source != LatenessSource::kOwnTime) {
    lateness.typical = MedianSeconds(NetStepTimes(window));
  }
  return lateness;
}

}  // namespace tacho::server::conditions

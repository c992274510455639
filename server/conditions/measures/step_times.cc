// Derives step times from a few tasks, because the tasks of a synchronous job agree, and removes
// from them what checkpoints and evaluations took, so that these do not look like slow steps.
#include "server/conditions/measures/step_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "proto/base/quantile.h"
#include "proto/base/saturate.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

// A step that a checkpoint or an evaluation took this share of does not count.
constexpr double kOverheadShare = 0.1;

std::vector<const TaskWindow*> SomeTasks(const JobWindow& window) {
  std::vector<const TaskWindow*> able;
  for (const TaskWindow& task : window.tasks) {
    if (StepTrack(task) != nullptr) able.push_back(&task);
  }
  if (able.size() <= kStepTimeTasks) return able;
  std::vector<const TaskWindow*> some;
  for (size_t i = 0; i < kStepTimeTasks; ++i) {
    some.push_back(able[i * able.size() / kStepTimeTasks]);
  }
  return some;
}

// Seconds that checkpoints and evaluations took of each step of a task.
std::map<int64_t, double> Overheads(const TaskWindow& task) {
  std::map<int64_t, double> overheads;
  for (const Signal signal : {Signal::kCheckpointTime, Signal::kEvalTime}) {
    const Track* track = FindTrack(task.tracks, signal);
    if (track == nullptr) continue;
    for (const Point& point : track->points) {
      if (std::isfinite(point.value) && point.value > 0) overheads[point.step] += point.value;
    }
  }
  return overheads;
}

struct Raw {
  StepTime step;
  bool in_phase = false;
};

void AddSteps(const TaskWindow& task, const PhaseCover& phases, std::vector<Raw>* out) {
  const Track* track = StepTrack(task);
  const bool recorded = track == FindTrack(task.tracks, Signal::kStepTime);
  const std::map<int64_t, double> overheads = Overheads(task);
  for (size_t i = 1; i < track->points.size(); ++i) {
    const Point& point = track->points[i];
    const Point& before = track->points[i - 1];
    if (point.step == kNoPointStep || before.step == kNoPointStep || point.step <= before.step) {
      continue;
    }
    const auto strides = static_cast<double>(point.step - before.step);
    double seconds = recorded ? point.value : Seconds(point.time_ns - before.time_ns) / strides;
    if (!std::isfinite(seconds) || seconds <= 0) continue;
    const int64_t begin = AddSeconds(point.time_ns, -seconds);
    const auto overhead = overheads.find(point.step);
    if (overhead != overheads.end()) {
      if (overhead->second > kOverheadShare * seconds) continue;
      seconds -= overhead->second;
    }
    out->push_back({.step = {point.step, point.time_ns, seconds},
                    .in_phase = phases.Covers(begin, point.time_ns)});
  }
}

}  // namespace

const Track* StepTrack(const TaskWindow& task) {
  if (const Track* track = FindTrack(task.tracks, Signal::kStepTime)) return track;
  const Track* best = nullptr;
  for (const auto& [signal, tracks] : task.tracks) {
    for (const Track& track : tracks) {
      if (track.empty() || track.points.back().step == kNoPointStep) continue;
      if (best == nullptr || track.points.size() > best->points.size()) best = &track;
    }
  }
  return best;
}

std::vector<StepTime> NetStepTimes(const JobWindow& window) {
  const PhaseCover phases(FindPhases(window));
  std::vector<Raw> raw;
  for (const TaskWindow* task : SomeTasks(window)) AddSteps(*task, phases, &raw);
  const auto in_phase = static_cast<size_t>(
      std::count_if(raw.begin(), raw.end(), [](const Raw& entry) { return entry.in_phase; }));
  // Checkpoints that are written beside the training overlap all steps.
  if (in_phase * 2 < raw.size())
    std::erase_if(raw, [](const Raw& entry) { return entry.in_phase; });
  std::sort(raw.begin(), raw.end(),
            [](const Raw& a, const Raw& b) { return a.step.step < b.step.step; });
  std::vector<StepTime> steps;
  std::vector<double> same;
  for (size_t i = 0; i < raw.size();) {
    StepTime step = raw[i].step;
    same.clear();
    for (; i < raw.size() && raw[i].step.step == step.step; ++i) {
      same.push_back(raw[i].step.seconds);
      step.time_ns = std::min(step.time_ns, raw[i].step.time_ns);
    }
    step.seconds = Median(same);
    steps.push_back(step);
  }
  return steps;
}

std::vector<StepTime> NewestOf(const std::vector<StepTime>& steps, int64_t now_ns, int64_t span_ns,
                               size_t min_steps) {
  std::vector<StepTime> newest;
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].time_ns < now_ns - span_ns && newest.size() >= min_steps) break;
    newest.push_back(steps[i]);
  }
  std::reverse(newest.begin(), newest.end());
  return newest;
}

double MedianSeconds(const std::vector<StepTime>& steps) {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const StepTime& step : steps) seconds.push_back(step.seconds);
  return Median(std::move(seconds));
}

double ProgressInterval(const JobWindow& window) {
  std::vector<const TaskWindow*> able;
  for (const TaskWindow& task : window.tasks) {
    if (task.pace.Best() != nullptr) able.push_back(&task);
  }
  const size_t measured = std::min(kStepTimeTasks, able.size());
  std::vector<CountedInterval> intervals;
  for (size_t i = 0; i < measured; ++i) {
    able[i * able.size() / measured]->pace.Best()->AppendTo(&intervals);
  }
  size_t known = 0;
  for (const CountedInterval& interval : intervals) known += interval.count;
  if (known < 3 * std::min(kStepTimeTasks, std::max<size_t>(1, window.tasks.size()))) {
    double first = 0;
    for (const TaskWindow& task : window.tasks) {
      if (!task.last_step.has_value() || window.attempt_started_ns <= 0) continue;
      first = std::max(first, Seconds(task.first_step_time_ns - window.attempt_started_ns));
    }
    intervals.push_back({first, 1});
  }
  return QuantileOf(std::move(intervals), 0.99);
}

}  // namespace tacho::server::conditions

#include "server/conditions/measures/lost_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/quantile.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

std::vector<double> Recorded(const StepMatrix& late, size_t task) {
  std::vector<double> values;
  for (size_t step = 0; step < late.steps(); ++step) {
    if (std::isfinite(late.at(task, step))) values.push_back(late.at(task, step));
  }
  return values;
}

LostTime Measure(const Lateness& lateness, size_t task, double threshold) {
  LostTime lost = {.task = task};
  bool before = false;
  for (size_t step = 0; step < lateness.late.steps(); ++step) {
    const double late = lateness.late.at(task, step);
    if (!std::isfinite(late)) continue;
    const bool is_late = late > threshold;
    if (is_late) {
      if (lost.late_steps == 0) lost.first_late = step;
      lost.newest_late = step;
      ++lost.late_steps;
      lost.seconds += late;
      if (!before) ++lost.episodes;
    }
    before = is_late;
  }
  return lost;
}

}  // namespace

std::vector<LostTime> MeasureLostTime(const Lateness& lateness, double deviations,
                                      double least_ratio) {
  const size_t tasks = lateness.late.tasks();
  std::vector<std::vector<double>> recorded(tasks);
  std::vector<double> spreads;
  for (size_t task = 0; task < tasks; ++task) {
    recorded[task] = Recorded(lateness.late, task);
    if (recorded[task].empty()) continue;
    spreads.push_back(ScaledMad(recorded[task], Median(recorded[task])));
  }
  const double threshold =
      std::max(deviations * Median(std::move(spreads)), least_ratio * lateness.typical);
  std::vector<LostTime> all;
  for (size_t task = 0; task < tasks; ++task) {
    const size_t steps = recorded[task].size();
    if (steps == 0 || steps * 2 < lateness.late.steps()) continue;
    LostTime lost = Measure(lateness, task, threshold);
    lost.share = lost.seconds / (lateness.typical * static_cast<double>(steps));
    all.push_back(lost);
  }
  return all;
}

}  // namespace tacho::server::conditions

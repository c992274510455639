// How long the steps of a job take, from what is recorded of them.
//
// The source is the signal step_time if it is recorded. Otherwise it is the time between two
// successive rows over the difference of their steps. A row has the time at which its trainer wrote
// it, not at which it arrived, so an outage that delays rows does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct StepTime {
  int64_t step = 0;
  int64_t time_ns = 0;  // The time of its row: when it ended.
  double seconds = 0;   // > 0
};

// The number of tasks measured, spread evenly: all tasks of a synchronous job agree.
inline constexpr size_t kStepTimeTasks = 5;

// One for each step, the median of the measured tasks, ascending by step. The first row in the
// attempt's window does not count (compiling), nor does the time of checkpoints and evaluations:
// their recorded time is subtracted; otherwise the steps within their events are left out, unless
// those are most of the steps.
std::vector<StepTime> NetStepTimes(const JobWindow& window);

// The steps within the newest `span_ns`, or the newest `min_steps` if that is more.
std::vector<StepTime> NewestOf(const std::vector<StepTime>& steps, int64_t now_ns, int64_t span_ns,
                               size_t min_steps);

// Their median; 0 if there are none.
double MedianSeconds(const std::vector<StepTime>& steps);

// The time between rows with a new step: the 0.99-quantile over the newest 512 rows or more of each
// measured task (task_pace.h), in seconds, without rows that have a phase between them. It is
// longer than a step if not every step has a row. With fewer than 3 such rows for each measured
// task, the time from the start of the attempt to the first row with a step counts too. 0 if
// nothing is known.
double ProgressInterval(const JobWindow& window);

// The track that shows a task's steps best: that of step_time, or else the longest one; nullptr if
// there is none.
const Track* StepTrack(const TaskWindow& task);

}  // namespace tacho::server::conditions

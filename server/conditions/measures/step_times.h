// How long the steps of a job take, from whatever is recorded of them.
//
// Sources, the first that is there: the signal step_time; the difference of the times of two rows
// that follow each other, over the difference of their steps. A row has the time at which its
// trainer wrote it, not at which it came, so that what was kept back by an outage does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct StepTime {
  int64_t step = 0;
  int64_t time_ns = 0;  // Of its row: when it ended.
  double seconds = 0;   // > 0
};

// Tasks that are looked at, spread evenly: those of a synchronous job all tell the same.
inline constexpr size_t kStepTimeTasks = 5;

// One a step, the median of the tasks looked at, ascending by step. Without the first row of the
// attempt's window (compiling), and without what checkpoints and evaluations took: as they recorded
// it, or else without the steps that an event says they fell into, unless that is most of them.
std::vector<StepTime> NetStepTimes(const JobWindow& window);

// What the newest `span_ns` of them have; all if there are fewer than `min_steps` in it.
std::vector<StepTime> NewestOf(const std::vector<StepTime>& steps, int64_t now_ns, int64_t span_ns,
                               size_t min_steps);

// Their median; 0 if there are none.
double MedianSeconds(const std::vector<StepTime>& steps);

// How long it is between rows that tell of progress: the 0.99-quantile over the newest rows, in
// seconds, without those with a phase between them. It is longer than a step if not each step is
// told. With fewer than 3 such rows what the first took since the attempt began counts, too, since
// that is all there is to know. 0 if nothing is known.
double ProgressInterval(const JobWindow& window);

// The track that tells of a task's steps best: of step_time, or else the longest one; nullptr if
// there is none.
const Track* StepTrack(const TaskWindow& task);

}  // namespace tacho::server::conditions

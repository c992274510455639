// InputBound: chips idle because the job waits for its input.
//
// Definition. Over the last `span` of steps, at least 10 of them:
//   wait = the median over tasks of  mean(data_wait) / mean(step time)
//   idle = 1 - the mean duty cycle of the job's chips
// It is input bound if wait > min_wait and idle > min_idle; without figures of chips, if
// wait > min_idle: a trainer that waits has nothing for its chips to do, unless it has dispatched
// ahead. The time between rows stands in for a step time that is not recorded. Steps that a
// checkpoint or an evaluation fell into do not count as steps, but what they took is in the means.
//
// The median leaves out single hosts with slow input: they are Straggling (SlowInput).
// Culprits: the tasks that wait longest, by host. Score: their share of waiting, higher is worse.
// Reasons: WaitingForInput, and WaitingForInputChipsUnknown without figures of chips.
//
// Needs data_wait of tasks. Cannot tell input that another thread awaits from one that blocks the
// chips, if the duty cycle is not known; and a chip that spins in a collective counts as busy, so
// that chips of hosts that wait for another's input may seem to work.
//
// Sources. Input-bound analysis as a share of the step: TensorFlow Profiler's input-pipeline
// analyzer, which calls 5 % moderate and 20 % high. The bounds are ours.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct InputBoundSettings {
  absl::Duration span = absl::Minutes(5);
  double min_idle = 0.15;
  double min_wait = 0.10;
};

Finding DetectInputBound(const JobWindow& window, const InputBoundSettings& settings);

}  // namespace tacho::server::conditions

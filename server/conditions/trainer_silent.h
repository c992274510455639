// TrainerSilent: the agent of a host is heard, but no rows of a task on it come.
//
// Definition. A task whose host's agent is connected and heard (heard.h), that has not ended, and
// whose newest row of any kind is older than
//   max(silent_after, 5 * the time between rows that tell of progress)          (step_times.h)
// is silent, unless an event has begun compiling, checkpointing, evaluating, restoring or
// initialising before it was silent for that long, or it has not told of its first step, and it is
// silent for less than phase_limit.
//
// Reasons: AllTrainers, if no task of the job that could be heard sends (it died without saying so,
// or hangs: Stalled says since which step), SomeTrainers otherwise. Culprits: the tasks, the first
// to fall silent first; score: seconds of silence. Step: its last.
//
// Needs agents. Cannot tell a dead trainer from one that waits: a trainer that is stuck in a step
// writes no rows either, unless it records from another thread.
//
// Source: our own; telling "agent gone", "agent there, trainer silent" and "trainer there, step
// stuck" apart is what a failed pull (`up`) cannot do.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/finding.h"
#include "server/conditions/window.h"

namespace tacho::server {

struct TrainerSilentSettings {
  absl::Duration silent_after = absl::Minutes(3);
  absl::Duration phase_limit = absl::Hours(1);
};

Finding DetectTrainerSilent(const JobWindow& window, const TrainerSilentSettings& settings);

}  // namespace tacho::server

// TrainerSilent: the agent of a host is heard, but no rows of a task on it come.
//
// Definition. A task whose host's agent is connected and heard (heard.h), that has not ended, and
// whose newest row of any kind is older than
//   max(silent_after, 5 * the time between rows that tell of progress)          (step_times.h)
// is silent, unless a phase (compiling, checkpointing, evaluating, restoring, initialising) began
// before it was silent for that long: while that goes on the task may be silent for phase_limit. If
// it began within two rows' time, then the task may be silent for as long as above from its end on,
// as a step comes after it; and so for a phase that begins at once after another. Of tasks that
// have not told of a first step every phase counts, and they may be silent for phase_limit without
// one.
//
// Reasons: AllTrainers, if no task of the job that could be heard sends (it died without saying so,
// or hangs: Stalled says since which step), SomeTrainers otherwise. Culprits: the tasks, the first
// to fall silent first; score: seconds of silence. Step: its last.
//
// Needs agents. Cannot tell a dead trainer from one that waits: a trainer that is stuck in a step
// writes no rows either, unless it records from another thread. So a hang makes this true beside
// Stalled, later than that, and Stalled is what is told: deploy/alertmanager inhibits this.
//
// Source: our own; telling "agent gone", "agent there, trainer silent" and "trainer there, step
// stuck" apart is what a failed pull (`up`) cannot do.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct TrainerSilentSettings {
  absl::Duration silent_after = absl::Minutes(3);
  absl::Duration phase_limit = absl::Hours(1);
};

Finding DetectTrainerSilent(const JobWindow& window, const TrainerSilentSettings& settings);

}  // namespace tacho::server::conditions

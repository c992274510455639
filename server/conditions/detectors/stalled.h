// Stalled: no task of the job has passed another step for too long, although it should.
//
// Definition. Let A be the newest time at which any task that is heard told of a new step, by the
// collector's clock. The job is stalled if
//   now - A > limit = max(floor, factor * p99, 2 * c)
// with p99 the 0.99-quantile of the times between rows that tell of a step (step_times.h), and c
// the longest time that a recorded checkpoint or evaluation blocked a step.
//
// Told apart. While an event has begun compiling, checkpointing, evaluating, restoring or
// initialising, and no step was passed since, the limit is that of the phase: as long as it may
// take, and for checkpoints and evaluations not more than `factor` times the longest before in this
// attempt. Before the first step the limit is `startup`. An attempt that has ended, and tasks that
// have, do not stall. Hosts whose agent is silent say nothing of their tasks; if that is most of
// them, nothing is judged.
//
// Who. In a collective all wait for one, so that the step alone does not say for whom. Each sign
// counts for a task; the sum is its score, more is more suspect:
//   4  its last step is lower than that of most (it never finished what the others did);
//   2  its last row of any kind is older than those of most, by a step and more;
//   1  its chips do otherwise than most hosts' chips: idle while those spin, or the other way
//   round; 1  its host's cores do otherwise than most.
// A sign that is true of half of the tasks or more is of no use and left out.
//
// Reasons: StepStuck (rows still come, the step does not move), NoRows, NoFirstStep, Initializing,
// Compiling, Restoring, Checkpointing, Evaluating, Preempted (that phase has taken too long).
//
// Needs rows with steps. Better with the signals chip_busy, host_cpu_busy and events.
// Cannot tell a hang from a wait that no event tells of; nor, if all chips and cores do the same,
// who it is.
//
// Sources. Factor and phases: NVIDIA Resiliency Extension's calculated timeouts, 5 times the
// largest gap seen, 60 min for the first heartbeat. A chip that spins in a collective is busy: duty
// cycle is no sign of progress (Google's megascale hang playbook, MaxText). The score is our own.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct StalledSettings {
  absl::Duration floor = absl::Minutes(2);
  double factor = 5;
  // How long before the first step, and how long a phase may take of which no earlier one is known.
  absl::Duration startup = absl::Hours(1);
  absl::Duration compile = absl::Hours(1);  // And initialising.
  absl::Duration restore = absl::Hours(1);  // And what follows a preemption.
  absl::Duration checkpoint = absl::Minutes(30);
  absl::Duration eval = absl::Hours(1);
};

// O(n log n) in tasks, events and values.
Finding DetectStalled(const JobWindow& window, const StalledSettings& settings);

}  // namespace tacho::server::conditions

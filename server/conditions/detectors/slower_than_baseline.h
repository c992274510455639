// SlowerThanBaseline: steps take longer than in earlier attempts of this job, or in other jobs of
// the same configuration.
//
// Definition. With T the median of the newest `steps` net step times (step_times.h: without
// checkpoints, evaluations and compiling), and B the median of the baselines' medians, each over
// min_baseline_steps at least: T > min_ratio * B, where B is of earlier attempts (reason
// EarlierAttempts), or of other jobs with the same config_fingerprint (reason SameConfiguration).
// If both are so, the larger ratio is told.
//
// Culprits: none; it is of the job as a whole. Straggling, Throttled and InputBound may say why.
//
// Needs a baseline and half of `steps`. Cannot tell that a batch or a number of chips was changed
// between attempts on purpose: give each attempt its config_fingerprint and batch_size.
//
// Source: our own. A shift of 10 to 15 % is what fleets act on; run-to-run variation of step times
// of 20 % before, and 1 % after, weeding out bad nodes: Guard (arXiv 2605.17879).
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct SlowerThanBaselineSettings {
  uint32_t steps = 100;
  double min_ratio = 1.15;
  uint64_t min_baseline_steps = 50;
};

Finding DetectSlowerThanBaseline(const JobWindow& window,
                                 const SlowerThanBaselineSettings& settings);

}  // namespace tacho::server::conditions

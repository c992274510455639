// ThroughputDropped: the job has become slower than it was before in the same attempt.
//
// Definition. The series is seconds per token (net step time over the tokens of the step, if tokens
// are counted), or else the net step time (step_times.h: without checkpoints, evaluations and
// compiling). The change point is the split t that the Mann-Whitney test finds the most unlikely,
//   U(t) = 2 * (R(1) + … + R(t)) - t * (n + 1)      R: ranks; a slower part after t makes it low
//   z(t) = -U(t) / sqrt(t * (n - t) * (n + 1) / 3)
// and it is a drop if, with `before` and `after` the medians on both sides of it,
//   after > min_ratio * before,
//   after - before > 3 * 1.4826 * MAD(before's part),
//   p = n * P(Z > z) < 1e-6,
//   min_before values are before it, min_after are after it, and
//   the newest min_after/2 values still have a median > min_ratio * before.
// Ranks make single slow steps harmless, whatever they took.
//
// It tells of a change: once all of the window is slow, nothing is left to compare with, and
// SlowerThanBaseline goes on telling, if there is a baseline.
// Reasons: TokensRate, StepTime. Culprits: none. since and step: the change point.
//
// Needs min_before + min_after steps. Cannot tell a fault from a change that was meant: longer
// sequences, a larger batch without counting tokens.
//
// Source: D. M. Hawkins, Q. Deng, "A nonparametric change-point control chart", Journal of Quality
// Technology 42 (2010). Pettitt's statistic (1979) is U without its scale, and misses late changes.
// The bound of p is low as step times are not independent; ratios are ours.
#pragma once

#include <cstddef>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct ThroughputDroppedSettings {
  double min_ratio = 1.15;
  size_t min_before = 50;
  size_t min_after = 20;
};

// O(n log n) in steps.
Finding DetectThroughputDropped(const JobWindow& window, const ThroughputDroppedSettings& settings);

}  // namespace tacho::server::conditions

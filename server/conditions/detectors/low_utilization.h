// LowUtilization: the job steps, but its chips do little.
//
// Definition. Over the last `span` in which it stepped, the first of these that is below its bound:
//   mfu          flops_per_step / (median step time * device_count * device_peak_flops), from the
//                attempt's attributes                                            < min_mfu
//   matrix units the mean of chip_tensor_busy over the job's chips               < min_tensor
//   duty cycle   the mean of chip_busy over them                                 < min_busy
// Or some chips do nothing at all: over the last fifth of `span` their mean of chip_busy is below
// 0.02 while the median chip's is above 0.3 (reason IdleChips, with them as culprits; score: 1 -
// busy, higher is worse).
//
// Reasons: LowMfu, LowTensorActivity, LowDutyCycle, IdleChips. Culprits of the others: the chips
// that do least.
//
// Needs the attributes, or figures of chips, and 20 steps at least 20 s after the first one. Not
// judged while no step is passed: that is Stalled. A duty cycle is time with any work at all, it
// says nothing of how much; MFU says how much, but only if flops_per_step is right: what it counts
// of attention and recomputing is the trainer's convention.
//
// Sources. MFU: PaLM (arXiv 2204.02311), appendix B; published values of large runs are 0.3 to 0.55
// (MegaScale 0.55), those of small models far lower, so that the bound is far below. Bounds are
// ours.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct LowUtilizationSettings {
  absl::Duration span = absl::Minutes(10);
  double min_mfu = 0.1;  // 0: not looked at; so for all three.
  double min_tensor = 0.1;
  double min_busy = 0.5;
};

Finding DetectLowUtilization(const JobWindow& window, const LowUtilizationSettings& settings);

}  // namespace tacho::server::conditions

// LossSpike: the loss has jumped above its own recent course.
//
// Definition. Going along the job's loss, each value is held against the `reference_points` values
// before it that belonged to no spike. Their local level is the median of the newest quarter; their
// noise is what remains of each less the median of the 9 around it, as 1.4826 MAD or the 95 %
// quantile over 1.645, whichever is more (losses of single batches are skewed upwards). A value is
// high if it is above level + max(sigmas × noise, least_relative × |level|). A spike begins when
// `values` of the newest `of_values` are high, so that one huge value alone, a bad batch, is none;
// it is over when the median of the newest `values` is below half of that threshold's distance.
// After `give_up_points` the new level is taken for granted (data of another kind has come, say).
// The condition is true from the beginning of a spike until it is over.
//
// Not judged where the learning rate has risen to more than `rate_jump` times within the newest
// reference: a schedule with warm restarts makes the loss jump as it should (Loshchilov & Hutter,
// SGDR, 2017).
// Source: own, after the practice of watching for spikes in training of large models (PaLM,
// Chowdhery et al. 2022, §5.1; OPT, Zhang et al. 2022, §2.5).
//
// Needs loss, `least_reference` values. Warning; reason LossSpike, or LossSpikeNotRecovered if it
// has lasted for more than `slow_points`. Step: its first high value. Score: height in noises.
// Limits: looks at the newest 1,024 values; a loss that is logged as an average over many steps
// shows a short spike in too few values.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct LossSpikeSettings {
  uint32_t reference_points = 64;
  uint32_t least_reference = 24;
  double sigmas = 6;
  double least_relative = 0.05;
  uint32_t values = 3;
  uint32_t of_values = 6;
  uint32_t slow_points = 50;
  uint32_t give_up_points = 200;
  double rate_jump = 2;

  friend bool operator==(const LossSpikeSettings&, const LossSpikeSettings&) = default;
};

Finding DetectLossSpike(const JobWindow& window, const LossSpikeSettings& settings);

}  // namespace tacho::server::conditions

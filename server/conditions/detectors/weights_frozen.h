// WeightsFrozen: training goes on, the weights do not change.
//
// Definition. Over the newest `values` recorded steps, with a learning rate above 0 at each of them
// (and above `end_rate` of the highest in the window):
//   update_norm is 0, or update_norm / param_norm is at most `share`, where it is recorded;
//   else param_norm has the very same bits at all of them, on tasks that record one.
// The task that is frozen longest is named first; one task is enough.
// `share`: adding to a float32 less than 2^-24 = 6e-8 of it changes nothing (IEEE 754 rounding).
// Source: own; the ratio of updates to weights is usually about 1e-3 (Karpathy, cs231n notes on
// babysitting the learning process).
//
// Needs update_norm or param_norm. Without a learning rate only exact zeros and same bits count.
// Critical: every second is wasted. Reasons: UpdatesZero, UpdatesTooSmall, ParameterNormConstant.
// Score: how many recorded steps it has been so.
// Limits: a norm that is logged with few digits stands still where the weights do not; more than
// `values` of it in a row are unlikely but for a very low learning rate.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct WeightsFrozenSettings {
  uint32_t values = 20;
  double share = 1e-9;
  double end_rate = 0.01;

  friend bool operator==(const WeightsFrozenSettings&, const WeightsFrozenSettings&) = default;
};

Finding DetectWeightsFrozen(const JobWindow& window, const WeightsFrozenSettings& settings);

}  // namespace tacho::server::conditions

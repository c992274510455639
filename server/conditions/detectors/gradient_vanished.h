// GradientVanished: gradients are next to nothing, so nothing is learned.
//
// Definition. Each of the newest `values` finite gradient norms is at most `floor`, or at most
// `share` of the upper quartile of the up to `reference` ones before (the upper one, so that the
// condition stays true for long). If all recorded norms are so from the start, only `floor` counts.
// Source: own; vanishing gradients as in Hochreiter 1991, Bengio et al. 1994. A loss scale that is
// too low in float16 makes exact zeros (Micikevicius et al. 2018).
//
// Needs grad_norm, `values` points. Warning; reason GradientZero if all are 0, else
// GradientVanished. Score: the newest median norm, the smaller the worse. Limits: a model that has
// learned its data by heart has no gradient either.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct GradientVanishedSettings {
  uint32_t values = 10;
  uint32_t reference = 1024;
  uint32_t least_reference = 32;
  double share = 1e-3;
  double floor = 1e-9;

  friend bool operator==(const GradientVanishedSettings&,
                         const GradientVanishedSettings&) = default;
};

Finding DetectGradientVanished(const JobWindow& window, const GradientVanishedSettings& settings);

}  // namespace tacho::server::conditions

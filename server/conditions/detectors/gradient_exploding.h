// GradientExploding: gradients grow out of proportion to what they were.
//
// Definition. The median of the newest `values` finite gradient norms is more than `factor` times
// the median of the up to `reference` ones before, and more than `sigmas` of their scatter above
// it, on a logarithmic scale (norms spread as products do; 1.4826 MAD of the logarithms). Or it is
// above `limit`, if that is set. Infinite norms are left out: a loss scaler makes single ones
// (Diverged counts those that last). Source: own; clipping by norm (Pascanu et al. 2013) hides the
// effect, not the norm.
//
// Needs grad_norm before clipping, `least_reference` + `values` points; a norm after clipping
// cannot explode. Warning; reason GradientNormGrew or GradientNormAboveLimit. Score: times the
// reference. Limits: growth that takes longer than the reference is the new reference.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct GradientExplodingSettings {
  uint32_t values = 5;
  uint32_t reference = 256;
  uint32_t least_reference = 32;
  double factor = 10;
  double sigmas = 6;
  double limit = 0;  // 0: none.

  friend bool operator==(const GradientExplodingSettings&,
                         const GradientExplodingSettings&) = default;
};

Finding DetectGradientExploding(const JobWindow& window, const GradientExplodingSettings& settings);

}  // namespace tacho::server::conditions

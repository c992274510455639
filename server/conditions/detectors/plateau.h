// Plateau: going on as it does, the loss will not fall any further worth mentioning.
//
// Definition. The newest `share` of the recorded steps are cut into `bins` stretches of equally
// many steps; each counts with the median of its losses. A line is fitted to the medians over the
// logarithm of the step: losses of training fall about as a power of the step (Kaplan et al.,
// "Scaling Laws for Neural Language Models", 2020; Hestness et al. 2017), which over a factor of
// two in steps is a straight line to within the noise. Extrapolated to the planned step (attribute
// planned_steps; without it `horizon` times the steps done), the line says what improvement is to
// be expected, and the standard error of its slope, widened for correlation, how sure that is:
//   improvement = -slope × ln(horizon step / newest step),  ± 2 × error of the slope × the same ln.
// The condition is true if the improvement is less than `least_improvement`, and the upper end of
// its interval less than `most_improvement`, of the loss (of the whole range of the loss in the
// window, if its sign changes).
//
// Not judged before `least_points` values and `least_steps` steps; while the learning rate still
// rises (warm-up); in the last `end_share` of the planned steps, or with a learning rate below
// `end_rate` of the highest in the window: then the end is planned. Without a training loss the
// evaluation loss is taken.
//
// Severity info; reason NoImprovementExpected, or LossRises if the interval lies below zero.
// Figures: expected improvement with both ends, in units of the loss, and the horizon's step.
// Limits: a schedule that cuts the learning rate later makes the loss fall more than a line says; a
// noisy loss, such as that of reinforcement learning, has too wide an interval to be called flat.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct PlateauSettings {
  double share = 0.3;
  uint32_t bins = 24;
  double horizon = 1.5;
  double least_improvement = 0.01;
  double most_improvement = 0.02;
  uint32_t least_points = 96;
  uint32_t least_steps = 150;
  double end_share = 0.1;
  double end_rate = 0.1;

  friend bool operator==(const PlateauSettings&, const PlateauSettings&) = default;
};

Finding DetectPlateau(const JobWindow& window, const PlateauSettings& settings);

}  // namespace tacho::server::conditions

// Overfitting: the model gets worse on held-out data while it gets better on its training data.
//
// Definition. Of each metric of evaluation loss, smoothed by the median of 3: the best value is at
// least `patience` evaluations ago; the median of the newest `patience` is above it by more than
// `least_rise` of it, and by more than `sigmas` of the noise (1.4826 MAD of the differences of
// neighbours over √2); and the training loss, as the median between two evaluations, is not above
// what it was at the best one. Where there is no evaluation loss, the same of evaluation accuracy
// against training accuracy, with falls for rises; an accuracy outside 0..1 is none, and is left
// out. Source: early stopping, as in Prechelt, "Early Stopping - but when?" (1998), generalisation
// loss with patience; the condition on the training loss is own: if that rises too, it is something
// else.
//
// Needs evaluations, `least_evaluations` of them, and the training metric. Warning; reason
// EvalLossRises or EvalAccuracyFalls. Step: that of the best evaluation, whose checkpoint to take.
// Score: the rise, relative to the best.
// Limits: evaluation loss may rise while accuracy still does too (overconfidence): that is
// reported.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct OverfittingSettings {
  uint32_t least_evaluations = 8;
  uint32_t patience = 5;
  double least_rise = 0.02;
  double sigmas = 4;

  friend bool operator==(const OverfittingSettings&, const OverfittingSettings&) = default;
};

Finding DetectOverfitting(const JobWindow& window, const OverfittingSettings& settings);

}  // namespace tacho::server::conditions

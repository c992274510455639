// Diverged: training has left the numbers that it can come back from.
//
// Definition. True if of one of these signals, on any task:
//   loss         the newest value is NaN or infinite, or 3 of the newest 20 are;
//   param_norm   the newest value is: the weights themselves are lost;
//   grad_norm, update_norm
//                the newest 5 are, after there was a finite one, or the newest 64 if there never
//                was: a loss scaler of mixed precision skips single steps with infinite gradients,
//                and many at the start while it looks for its scale (Micikevicius et al., "Mixed
//                Precision Training", 2018);
//   eval_loss    the newest 2 are, after there was a finite one;
// or if the loss has run away: the median of the newest 20 values is above the least such median of
// before by more than the whole fall until there from the first one, by more than half of the
// least's absolute value, and by more than 10 times the noise, and it is not on its way down again.
// A rise of a quarter of the fall is the beginning of many recoverable spikes; all of it is not.
// A loss whose sign changes, such as those of adversarial and energy-based models, is not judged
// for running away.
//
// A task whose loss was never finite while others' is has none (stages of a pipeline but the last
// one), and is left out. Other metrics never count, whatever they are.
// Source: own; the order of first occurrences is what users ask for most (which task, which metric
// was first: pytorch #122694, jax #9767). So nothing is told for up to 10 s while rows of that step
// are still to come from a task: it may have been the first.
//
// Needs loss, or one of the other signals. Critical. Reasons: NonFiniteLoss, NonFiniteWeights,
// NonFiniteGradient, NonFiniteEvalLoss, LossRanAway. Culprits: by the step, then the time, of the
// first value of the present stretch; score: how many tasks were hit before.
// Limits: a window that begins after the first NaN names the first that it holds.
#pragma once

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct DivergedSettings {
  // Of the loss: that many non-finite values among the newest `loss_window`.
  uint32_t loss_values = 3;
  uint32_t loss_window = 20;
  uint32_t gradient_values = 5;         // In a row.
  uint32_t gradient_start_values = 64;  // In a row, if none was finite before.
  uint32_t eval_values = 2;             // In a row.
  // Of a loss that runs away.
  uint32_t run_away_points = 20;
  double run_away_share = 1;       // Of the fall so far.
  double run_away_relative = 0.5;  // Of the least level.
  double run_away_noise = 10;      // Standard deviations.

  friend bool operator==(const DivergedSettings&, const DivergedSettings&) = default;
};

Finding DetectDiverged(const JobWindow& window, const DivergedSettings& settings);

}  // namespace tacho::server::conditions

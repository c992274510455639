#include "server/conditions/settings_curves.h"

namespace tacho::server::conditions {

DivergedSettings SettingsOf(const config::v1::ConditionsCurves::Diverged& config) {
  return {.loss_values = config.loss_values(),
          .loss_window = config.loss_window(),
          .gradient_values = config.gradient_values(),
          .gradient_start_values = config.gradient_start_values(),
          .eval_values = config.eval_values(),
          .run_away_points = config.run_away_points(),
          .run_away_share = config.run_away_share(),
          .run_away_relative = config.run_away_relative(),
          .run_away_noise = config.run_away_noise()};
}

LossSpikeSettings SettingsOf(const config::v1::ConditionsCurves::LossSpike& config) {
  return {.reference_points = config.reference_points(),
          .least_reference = config.least_reference(),
          .sigmas = config.sigmas(),
          .least_relative = config.least_relative(),
          .values = config.values(),
          .of_values = config.of_values(),
          .slow_points = config.slow_points(),
          .give_up_points = config.give_up_points(),
          .rate_jump = config.rate_jump()};
}

PlateauSettings SettingsOf(const config::v1::ConditionsCurves::Plateau& config) {
  return {.share = config.share(),
          .bins = config.bins(),
          .horizon = config.horizon(),
          .least_improvement = config.least_improvement(),
          .most_improvement = config.most_improvement(),
          .least_points = config.least_points(),
          .least_steps = config.least_steps(),
          .end_share = config.end_share(),
          .end_rate = config.end_rate()};
}

OscillatingSettings SettingsOf(const config::v1::ConditionsCurves::Oscillating& config) {
  return {.points = config.points(),
          .correlation = config.correlation(),
          .anticorrelation = config.anticorrelation(),
          .least_swing = config.least_swing()};
}

GradientExplodingSettings SettingsOf(
    const config::v1::ConditionsCurves::GradientExploding& config) {
  return {.values = config.values(),
          .reference = config.reference(),
          .least_reference = config.least_reference(),
          .factor = config.factor(),
          .sigmas = config.sigmas(),
          .limit = config.limit()};
}

GradientVanishedSettings SettingsOf(const config::v1::ConditionsCurves::GradientVanished& config) {
  return {.values = config.values(),
          .reference = config.reference(),
          .least_reference = config.least_reference(),
          .share = config.share(),
          .floor = config.floor()};
}

WeightsFrozenSettings SettingsOf(const config::v1::ConditionsCurves::WeightsFrozen& config) {
  return {.values = config.values(), .share = config.share(), .end_rate = config.end_rate()};
}

OverfittingSettings SettingsOf(const config::v1::ConditionsCurves::Overfitting& config) {
  return {.least_evaluations = config.least_evaluations(),
          .patience = config.patience(),
          .least_rise = config.least_rise(),
          .sigmas = config.sigmas()};
}

ReplicaDisagreementSettings SettingsOf(
    const config::v1::ConditionsCurves::ReplicaDisagreement& config) {
  return {.steps = config.steps(),
          .least_steps = config.least_steps(),
          .tolerance = config.tolerance()};
}

}  // namespace tacho::server::conditions

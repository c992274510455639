#include "server/conditions/detectors_curves.h"

#include "server/conditions/detector_row.h"
#include "server/conditions/settings_curves.h"

namespace tacho::server::conditions {

std::vector<Detector> CurvesDetectors(const config::v1::ConditionsCurves& config) {
  return {
      Row("Diverged", DetectDiverged, SettingsOf(config.diverged()), config.diverged()),
      Row("LossSpike", DetectLossSpike, SettingsOf(config.loss_spike()), config.loss_spike()),
      Row("Plateau", DetectPlateau, SettingsOf(config.plateau()), config.plateau()),
      Row("Oscillating", DetectOscillating, SettingsOf(config.oscillating()), config.oscillating()),
      Row("GradientExploding", DetectGradientExploding, SettingsOf(config.gradient_exploding()),
          config.gradient_exploding()),
      Row("GradientVanished", DetectGradientVanished, SettingsOf(config.gradient_vanished()),
          config.gradient_vanished()),
      Row("WeightsFrozen", DetectWeightsFrozen, SettingsOf(config.weights_frozen()),
          config.weights_frozen()),
      Row("Overfitting", DetectOverfitting, SettingsOf(config.overfitting()), config.overfitting()),
      Row("ReplicaDisagreement", DetectReplicaDisagreement,
          SettingsOf(config.replica_disagreement()), config.replica_disagreement()),
  };
}

}  // namespace tacho::server::conditions

#include "server/conditions/detectors_curves.h"

#include <utility>

#include "absl/time/time.h"
#include "server/conditions/settings_curves.h"

namespace tacho::server {
namespace {

// A row for a detector with its settings and what all messages of conditions have in common.
template <typename Settings, typename Config>
Detector Row(const char* name, Finding (*detect)(const JobWindow&, const Settings&),
             Settings settings, const Config& config) {
  return {
      .name = name,
      .enabled = config.enabled(),
      .detect = [detect, settings](const JobWindow& window) { return detect(window, settings); },
      .hold_for = absl::Nanoseconds(config.for_()),
      .clear_after = absl::Nanoseconds(config.clear_after()),
      .severity = ParseSeverity(config.severity())};
}

}  // namespace

std::vector<Detector> CurvesDetectors(const config::v1::ConditionsCurves& config) {
  return {
      Row("Diverged", DetectDiverged, MakeDivergedSettings(config.diverged()), config.diverged()),
      Row("LossSpike", DetectLossSpike, MakeLossSpikeSettings(config.loss_spike()),
          config.loss_spike()),
      Row("Plateau", DetectPlateau, MakePlateauSettings(config.plateau()), config.plateau()),
      Row("Oscillating", DetectOscillating, MakeOscillatingSettings(config.oscillating()),
          config.oscillating()),
      Row("GradientExploding", DetectGradientExploding,
          MakeGradientExplodingSettings(config.gradient_exploding()), config.gradient_exploding()),
      Row("GradientVanished", DetectGradientVanished,
          MakeGradientVanishedSettings(config.gradient_vanished()), config.gradient_vanished()),
      Row("WeightsFrozen", DetectWeightsFrozen, MakeWeightsFrozenSettings(config.weights_frozen()),
          config.weights_frozen()),
      Row("Overfitting", DetectOverfitting, MakeOverfittingSettings(config.overfitting()),
          config.overfitting()),
      Row("ReplicaDisagreement", DetectReplicaDisagreement,
          MakeReplicaDisagreementSettings(config.replica_disagreement()),
          config.replica_disagreement()),
  };
}

}  // namespace tacho::server

// Settings of the detectors of curves, out of the configuration, in which every key is set.
#pragma once

#include "server/conditions/detectors/diverged.h"
#include "server/conditions/detectors/gradient_exploding.h"
#include "server/conditions/detectors/gradient_vanished.h"
#include "server/conditions/detectors/loss_spike.h"
#include "server/conditions/detectors/oscillating.h"
#include "server/conditions/detectors/overfitting.h"
#include "server/conditions/detectors/plateau.h"
#include "server/conditions/detectors/replica_disagreement.h"
#include "server/conditions/detectors/weights_frozen.h"
#include "tacho/config/v1/conditions_curves.pb.h"

namespace tacho::server::conditions {

DivergedSettings SettingsOf(const config::v1::ConditionsCurves::Diverged& config);
LossSpikeSettings SettingsOf(const config::v1::ConditionsCurves::LossSpike& config);
PlateauSettings SettingsOf(const config::v1::ConditionsCurves::Plateau& config);
OscillatingSettings SettingsOf(const config::v1::ConditionsCurves::Oscillating& config);
GradientExplodingSettings SettingsOf(const config::v1::ConditionsCurves::GradientExploding& config);
GradientVanishedSettings SettingsOf(const config::v1::ConditionsCurves::GradientVanished& config);
WeightsFrozenSettings SettingsOf(const config::v1::ConditionsCurves::WeightsFrozen& config);
OverfittingSettings SettingsOf(const config::v1::ConditionsCurves::Overfitting& config);
ReplicaDisagreementSettings SettingsOf(
    const config::v1::ConditionsCurves::ReplicaDisagreement& config);

}  // namespace tacho::server::conditions

// The settings of the detectors of progress, from the configuration.
#pragma once

#include "server/conditions/detectors/agent_silent.h"
#include "server/conditions/detectors/clock_skewed.h"
#include "server/conditions/detectors/data_loss.h"
#include "server/conditions/detectors/input_bound.h"
#include "server/conditions/detectors/low_utilization.h"
#include "server/conditions/detectors/slower_than_baseline.h"
#include "server/conditions/detectors/stalled.h"
#include "server/conditions/detectors/straggling.h"
#include "server/conditions/detectors/task_missing.h"
#include "server/conditions/detectors/throughput_dropped.h"
#include "server/conditions/detectors/trainer_silent.h"
#include "tacho/config/v1/conditions_progress.pb.h"

namespace tacho::server::conditions {

StalledSettings SettingsOf(const config::v1::ConditionsProgress::Stalled& config);
StragglingSettings SettingsOf(const config::v1::ConditionsProgress::Straggling& config);
InputBoundSettings SettingsOf(const config::v1::ConditionsProgress::InputBound& config);
LowUtilizationSettings SettingsOf(const config::v1::ConditionsProgress::LowUtilization& config);
SlowerThanBaselineSettings SettingsOf(
    const config::v1::ConditionsProgress::SlowerThanBaseline& config);
ThroughputDroppedSettings SettingsOf(
    const config::v1::ConditionsProgress::ThroughputDropped& config);
TaskMissingSettings SettingsOf(const config::v1::ConditionsProgress::TaskMissing& config);
AgentSilentSettings SettingsOf(const config::v1::ConditionsProgress::AgentSilent& config);
TrainerSilentSettings SettingsOf(const config::v1::ConditionsProgress::TrainerSilent& config);
ClockSkewedSettings SettingsOf(const config::v1::ConditionsProgress::ClockSkewed& config);
DataLossSettings SettingsOf(const config::v1::ConditionsProgress::DataLoss& config);

}  // namespace tacho::server::conditions

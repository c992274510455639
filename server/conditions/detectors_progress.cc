#include "server/conditions/detectors_progress.h"

#include "server/conditions/detector_row.h"
#include "server/conditions/settings_progress.h"

namespace tacho::server::conditions {

std::vector<Detector> ProgressDetectors(const config::v1::ConditionsProgress& config) {
  return {
      Row("Stalled", DetectStalled, SettingsOf(config.stalled()), config.stalled()),
      Row("Straggling", DetectStraggling, SettingsOf(config.straggling()), config.straggling()),
      Row("InputBound", DetectInputBound, SettingsOf(config.input_bound()), config.input_bound()),
      Row("LowUtilization", DetectLowUtilization, SettingsOf(config.low_utilization()),
          config.low_utilization()),
      Row("SlowerThanBaseline", DetectSlowerThanBaseline, SettingsOf(config.slower_than_baseline()),
          config.slower_than_baseline()),
      Row("ThroughputDropped", DetectThroughputDropped, SettingsOf(config.throughput_dropped()),
          config.throughput_dropped()),
      Row("TaskMissing", DetectTaskMissing, SettingsOf(config.task_missing()),
          config.task_missing()),
      Row("AgentSilent", DetectAgentSilent, SettingsOf(config.agent_silent()),
          config.agent_silent()),
      Row("TrainerSilent", DetectTrainerSilent, SettingsOf(config.trainer_silent()),
          config.trainer_silent()),
      Row("ClockSkewed", DetectClockSkewed, SettingsOf(config.clock_skewed()),
          config.clock_skewed()),
      Row("DataLoss", DetectDataLoss, SettingsOf(config.data_loss()), config.data_loss()),
  };
}

}  // namespace tacho::server::conditions

#include "server/conditions/detectors_progress.h"

#include "absl/time/time.h"
#include "server/conditions/settings_progress.h"

namespace tacho::server {
namespace {

// `Config` is the condition's message.
template <typename Config, typename Settings>
Detector Row(const char* name, const Config& config,
             Finding (*detect)(const JobWindow&, const Settings&)) {
  return {.name = name,
          .enabled = config.enabled(),
          .detect = [settings = SettingsOf(config),
                     detect](const JobWindow& window) { return detect(window, settings); },
          .hold_for = absl::Nanoseconds(config.for_()),
          .clear_after = absl::Nanoseconds(config.clear_after()),
          .severity = ParseSeverity(config.severity())};
}

}  // namespace

std::vector<Detector> ProgressDetectors(const config::v1::ConditionsProgress& config) {
  return {
      Row("Stalled", config.stalled(), DetectStalled),
      Row("Straggling", config.straggling(), DetectStraggling),
      Row("InputBound", config.input_bound(), DetectInputBound),
      Row("LowUtilization", config.low_utilization(), DetectLowUtilization),
      Row("SlowerThanBaseline", config.slower_than_baseline(), DetectSlowerThanBaseline),
      Row("ThroughputDropped", config.throughput_dropped(), DetectThroughputDropped),
      Row("TaskMissing", config.task_missing(), DetectTaskMissing),
      Row("AgentSilent", config.agent_silent(), DetectAgentSilent),
      Row("TrainerSilent", config.trainer_silent(), DetectTrainerSilent),
      Row("ClockSkewed", config.clock_skewed(), DetectClockSkewed),
      Row("DataLoss", config.data_loss(), DetectDataLoss),
  };
}

}  // namespace tacho::server

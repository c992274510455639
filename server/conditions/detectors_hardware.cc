#include "server/conditions/detectors_hardware.h"

#include "absl/time/time.h"
#include "server/conditions/settings_hardware.h"

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

std::vector<Detector> HardwareDetectors(const config::v1::ConditionsHardware& config) {
  return {
      Row("MemoryLeak", config.memory_leak(), DetectMemoryLeak),
      Row("MemoryPressure", config.memory_pressure(), DetectMemoryPressure),
      Row("Throttled", config.throttled(), DetectThrottled),
      Row("HardwareErrors", config.hardware_errors(), DetectHardwareErrors),
  };
}

}  // namespace tacho::server

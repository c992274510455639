#include "server/conditions/detectors_hardware.h"

#include "server/conditions/detector_row.h"
#include "server/conditions/settings_hardware.h"

namespace tacho::server::conditions {

std::vector<Detector> HardwareDetectors(const config::v1::ConditionsHardware& config) {
  return {
      Row("MemoryLeak", DetectMemoryLeak, SettingsOf(config.memory_leak()), config.memory_leak()),
      Row("MemoryPressure", DetectMemoryPressure, SettingsOf(config.memory_pressure()),
          config.memory_pressure()),
      Row("Throttled", DetectThrottled, SettingsOf(config.throttled()), config.throttled()),
      Row("HardwareErrors", DetectHardwareErrors, SettingsOf(config.hardware_errors()),
          config.hardware_errors()),
  };
}

}  // namespace tacho::server::conditions

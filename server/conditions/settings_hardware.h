// The settings of the detectors of hardware, from the configuration.
#pragma once

#include "server/conditions/detectors/hardware_errors.h"
#include "server/conditions/detectors/memory_leak.h"
#include "server/conditions/detectors/memory_pressure.h"
#include "server/conditions/detectors/throttled.h"
#include "tacho/config/v1/conditions_hardware.pb.h"

namespace tacho::server::conditions {

MemoryLeakSettings SettingsOf(const config::v1::ConditionsHardware::MemoryLeak& config);
MemoryPressureSettings SettingsOf(const config::v1::ConditionsHardware::MemoryPressure& config);
ThrottledSettings SettingsOf(const config::v1::ConditionsHardware::Throttled& config);
HardwareErrorsSettings SettingsOf(const config::v1::ConditionsHardware::HardwareErrors& config);

}  // namespace tacho::server::conditions

// The rows of the engine's table that are about chips and hosts (detector.h).
#pragma once

#include <vector>

#include "server/conditions/detector.h"
#include "tacho/config/v1/conditions_hardware.pb.h"

namespace tacho::server::conditions {

// In the order of the configuration. Keeps nothing of `config`.
std::vector<Detector> HardwareDetectors(const config::v1::ConditionsHardware& config);

}  // namespace tacho::server::conditions

// The rows of the engine's table that are of a job's progress (detector.h).
#pragma once

#include <vector>

#include "server/conditions/detector.h"
#include "tacho/config/v1/conditions_progress.pb.h"

namespace tacho::server::conditions {

// In the order of the configuration. Keeps nothing of `config`.
std::vector<Detector> ProgressDetectors(const config::v1::ConditionsProgress& config);

}  // namespace tacho::server::conditions

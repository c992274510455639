// The conditions that are read off the curves of training.
#pragma once

#include <vector>

#include "server/conditions/detector.h"
#include "tacho/config/v1/conditions_curves.pb.h"

namespace tacho::server::conditions {

// With every key of `config` set, as a configuration that was read has them.
std::vector<Detector> CurvesDetectors(const config::v1::ConditionsCurves& config);

}  // namespace tacho::server::conditions

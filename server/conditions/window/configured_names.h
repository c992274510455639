// The configuration's `conditions.signals`, for all that reads signals.
#pragma once

#include "server/conditions/window/signal_names.h"
#include "tacho/config/v1/conditions_signals.pb.h"

namespace tacho::server::conditions {

SignalNames ConfiguredNames(const config::v1::ConditionSignals& config);

}  // namespace tacho::server::conditions

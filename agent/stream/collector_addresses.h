// The collectors that a configuration names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

// At least one, the preferred one first.
//   INVALID_ARGUMENT  none is named, one is named twice, or both collector.address and
//                     collector.addresses are given; the text says which, and what to do.
absl::StatusOr<std::vector<std::string>> CollectorAddresses(
    const config::v1::Agent::Collector& config);

}  // namespace tacho::agent

// Who this agent is.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct Identity {
  std::string agent_id;  // Unique in the fleet, stable over restarts.
  std::string host;      // The host label.
  std::map<std::string, std::string> labels;
};

// Fills in what the configuration leaves empty with the host name, which `host_name` gives; null is
// gethostname().
//   INVALID_ARGUMENT  a value is longer than the collector takes, or a label's name is none; the
//   text
//                     names the key.
//   UNAVAILABLE       the host name is needed and unknown.
absl::StatusOr<Identity> ResolveIdentity(const config::v1::Agent::Identity& config,
                                         const std::function<std::string()>& host_name = nullptr);

}  // namespace tacho::agent

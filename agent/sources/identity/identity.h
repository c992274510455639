// The names of this agent and its host, and the facts that need no network.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/sources/identity/host_facts.h"
#include "agent/sources/identity/metadata_server.h"
#include "client/environment_identity.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct Identity {
  std::string agent_id;  // Unique in the fleet, stable over restarts.
  std::string agent_id_from;
  std::string host;  // The host label.
  std::string host_from;
  HostFacts facts;  // Configured labels, and those that were found here.
  // Knows more, if this machine is one of Google Compute Engine.
  std::optional<MetadataServer> metadata;
};

// Where to look. Tests look elsewhere.
struct IdentityPlaces {
  std::function<std::string()> host_name = nullptr;  // Null is gethostname().
  client::EnvironmentGetter environment = nullptr;   // Null: there is none.
  std::string sys = "/sys";
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// For each of the two the first that is there:
//
//   agent_id  identity.agent_id, TACHO_AGENT_ID, the host name
//   host      identity.host, TACHO_HOST, NODE_NAME, SLURMD_NODENAME, the host name
//
// Neither comes from the network: a collector knows by the agent id what it has stored of a spool,
// so that id must not depend on what answers when the agent starts.
//   INVALID_ARGUMENT  a value is longer than the collector takes, or a label's name is none; the
//                     text names the key or the variable.
//   UNAVAILABLE       the host name is needed and unknown.
absl::StatusOr<Identity> ResolveIdentity(const config::v1::Agent::Identity& config,
                                         const IdentityPlaces& places);

}  // namespace tacho::agent

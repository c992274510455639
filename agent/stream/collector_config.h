// The part of the configuration on the collectors: where they are, and how the way to them is
// secured.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/channel/channel_security.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

// Whether the collectors share the jobs: CollectorAddresses() are then the members of a cluster, in
// the order of their shards. Otherwise the agent sends everything to one of them: also with a
// single member, for which spares stand in.
inline bool IsCluster(const config::v1::Agent::Collector& config) {
  return config.members_size() > 1;
}

// The collectors that a configuration names: at least one, the preferred one first; or the members
// of a cluster, two at least, or one if it has spares.
//   INVALID_ARGUMENT  none is named, one is named twice, or more than one of collector.address,
//                     collector.addresses and collector.members is given; the text says which, and
//                     what to do.
absl::StatusOr<std::vector<std::string>> CollectorAddresses(
    const config::v1::Agent::Collector& config);

// collector.spares, which CollectorAddresses() has checked.
std::vector<std::string> SpareAddresses(const config::v1::Agent::Collector& config);

// The security of the way to the collector, as the agent's configuration says it.

inline constexpr client::ChannelSecurityNames kSecurityKeys = {
    .tls = "collector.tls.enabled: true",
    .ca = "collector.tls.ca",
    .certificate = "collector.tls.certificate",
    .key = "collector.tls.key",
    .server_name = "collector.tls.server_name",
    .token_file = "collector.token_file",
    .allow_plaintext_token = "collector.allow_plaintext_token: true"};

client::ChannelSecurity SecurityOf(const config::v1::Agent::Collector& collector);

// INVALID_ARGUMENT  as client::CheckChannelSecurity() for one of the addresses, whatever its code;
//                   or as CollectorAddresses().
absl::Status CheckSecurity(const config::v1::Agent::Collector& collector);

}  // namespace tacho::agent

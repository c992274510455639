#include "agent/stream/collector_security.h"

#include "agent/stream/collector_addresses.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

client::ChannelSecurity SecurityOf(const config::v1::Agent::Collector& collector) {
  client::ChannelSecurity security;
  security.tls = collector.tls().enabled();
  security.ca = collector.tls().ca();
  security.certificate = collector.tls().certificate();
  security.key = collector.tls().key();
  security.server_name = collector.tls().server_name();
  security.token_file = collector.token_file();
  security.allow_plaintext_token = collector.allow_plaintext_token();
  return security;
}

absl::Status CheckSecurity(const config::v1::Agent::Collector& collector) {
  TACHO_ASSIGN_OR_RETURN(const auto addresses, CollectorAddresses(collector));
  for (const std::string& address : addresses) {
    auto s = client::CheckChannelSecurity(SecurityOf(collector), address, kSecurityKeys);
    if (!s.ok()) return absl::InvalidArgumentError(s.message());
  }
  return absl::OkStatus();
}

}  // namespace tacho::agent

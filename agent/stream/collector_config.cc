#include "agent/stream/collector_config.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/config/yaml_config.h"

namespace tacho::agent {
namespace {

std::vector<std::string> DefaultAddresses() {
  config::v1::Agent defaults;
  if (!config::ParseYaml("", "", &defaults).ok()) return {};
  return {defaults.collector().addresses().begin(), defaults.collector().addresses().end()};
}

absl::Status CheckEach(const char* key, const std::vector<std::string>& addresses) {
  std::set<std::string> seen;
  for (const std::string& address : addresses) {
    if (address.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, " has an empty element; expected host:port"));
    }
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, " names ", address, " twice; expected each once"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Members(const config::v1::Agent::Collector& config) {
  const std::vector<std::string> addresses(config.addresses().begin(), config.addresses().end());
  const bool has_addresses = addresses != DefaultAddresses();
  if (has_addresses || !config.address().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("collector.members and collector.", has_addresses ? "addresses" : "address",
                     " are both given; leave members out if each collector keeps every job, and "
                     "the other one out if they share the jobs"));
  }
  std::vector<std::string> members(config.members().begin(), config.members().end());
  TACHO_RETURN_IF_ERROR(CheckEach("collector.members", members));
  const std::vector<std::string> spares = SpareAddresses(config);
  if (members.size() == 1 && spares.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("collector.members has one address (", members.front(),
                     "); name all members of the cluster, or put it into collector.addresses"));
  }
  std::vector<std::string> all = members;
  all.insert(all.end(), spares.begin(), spares.end());
  TACHO_RETURN_IF_ERROR(CheckEach("collector.members and collector.spares", all));
  return members;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CollectorAddresses(
    const config::v1::Agent::Collector& config) {
  if (!config.members().empty()) return Members(config);
  if (!config.split_jobs().empty()) {
    return absl::InvalidArgumentError(
        "collector.split_jobs needs collector.members, the collectors that share the rows of these "
        "jobs");
  }
  if (!config.spares().empty()) {
    return absl::InvalidArgumentError(
        "collector.spares needs collector.members, the collectors that they stand in for");
  }
  std::vector<std::string> addresses(config.addresses().begin(), config.addresses().end());
  if (!config.address().empty()) {
    if (addresses != DefaultAddresses()) {
      return absl::InvalidArgumentError(
          absl::StrCat("collector.address (", config.address(),
                       ") and collector.addresses are both given; put it first in addresses and "
                       "leave address out"));
    }
    return std::vector<std::string>{config.address()};
  }
  if (addresses.empty()) {
    return absl::InvalidArgumentError(
        "collector.addresses is empty; expected at least one host:port");
  }
  TACHO_RETURN_IF_ERROR(CheckEach("collector.addresses", addresses));
  return addresses;
}

std::vector<std::string> SpareAddresses(const config::v1::Agent::Collector& config) {
  return {config.spares().begin(), config.spares().end()};
}

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
  TACHO_ASSIGN_OR_RETURN(auto addresses, CollectorAddresses(collector));
  const std::vector<std::string> spares = SpareAddresses(collector);
  addresses.insert(addresses.end(), spares.begin(), spares.end());
  for (const std::string& address : addresses) {
    auto s = client::CheckChannelSecurity(SecurityOf(collector), address, kSecurityKeys);
    if (!s.ok()) return absl::InvalidArgumentError(s.message());
  }
  return absl::OkStatus();
}

}  // namespace tacho::agent

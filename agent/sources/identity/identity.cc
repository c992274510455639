#include "agent/sources/identity/identity.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/host_name.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// As tacho/v1/ingest.proto and types.proto state them.
constexpr size_t kMaxAgentId = 128;
constexpr size_t kMaxHost = 256;
constexpr size_t kMaxLabels = 32;
constexpr size_t kMaxLabelName = 128;
constexpr size_t kMaxLabelValue = 1024;

bool IsLabelName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxLabelName || absl::ascii_isdigit(name.front()))
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

absl::Status CheckLength(absl::string_view key, absl::string_view value, size_t max) {
  if (value.size() <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": ", value.size(), " bytes, expected at most ", max));
}

absl::Status CheckLabels(const google::protobuf::Map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat("identity.labels: ", labels.size(), " labels, expected at most ", kMaxLabels));
  }
  for (const auto& [name, value] : labels) {
    if (!IsLabelName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "identity.labels: '", name, "' is no label name, expected [a-zA-Z_][a-zA-Z0-9_]*"));
    }
    if (value.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("identity.labels.", name, ": empty, expected a value"));
    }
    absl::Status status =
        CheckLength(absl::StrCat("identity.labels.", name), value, kMaxLabelValue);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The first of the variables that is set.
HostFact Variable(const IdentityPlaces& places, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = places.environment ? places.environment(name) : nullptr;
    if (value != nullptr && *value != '\0') return {value, name};
  }
  return {};
}

// `named` if it has a value, else the machine's own name.
absl::StatusOr<HostFact> OrHostName(const HostFact& named, const IdentityPlaces& places) {
  if (!named.value.empty()) return named;
  const std::string name = places.host_name ? places.host_name() : SystemHostName();
  if (name.empty()) {
    return absl::UnavailableError(
        "this machine has no host name; set identity.agent_id and identity.host");
  }
  return HostFact{name, "host name"};
}

HostFact Configured(const std::string& value, const char* key, const HostFact& otherwise) {
  return value.empty() ? otherwise : HostFact{value, key};
}

absl::Status AddLabels(const config::v1::Agent::Identity& config, const IdentityPlaces& places,
                       Identity* identity) {
  TACHO_RETURN_IF_ERROR(CheckLabels(config.labels()));
  for (const auto& [label, value] : config.labels()) {
    identity->facts[label] = {value, kConfigured};
  }
  if (!config.discover()) return absl::OkStatus();
  AddFactsOfEnvironment(places.environment, &identity->facts);
  AddFactsOfPod(config.pod_info(), places.service_account, &identity->facts);
  if (config.metadata_server() == "never") return absl::OkStatus();
  const auto found =
      FindMetadataServer(places.sys, places.environment, config.metadata_server() == "always");
  if (!found.ok()) return found.status();
  if (found->has_value()) {
    identity->metadata.emplace(**found, absl::Nanoseconds(config.metadata_timeout()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Identity> ResolveIdentity(const config::v1::Agent::Identity& config,
                                         const IdentityPlaces& places) {
  const auto agent_id = OrHostName(
      Configured(config.agent_id(), "identity.agent_id", Variable(places, {"TACHO_AGENT_ID"})),
      places);
  if (!agent_id.ok()) return agent_id.status();
  const auto host =
      OrHostName(Configured(config.host(), "identity.host",
                            Variable(places, {"TACHO_HOST", "NODE_NAME", "SLURMD_NODENAME"})),
                 places);
  if (!host.ok()) return host.status();
  Identity identity;
  identity.agent_id = agent_id->value;
  identity.agent_id_from = agent_id->from;
  identity.host = host->value;
  identity.host_from = host->from;
  absl::Status status = CheckLength(agent_id->from, agent_id->value, kMaxAgentId);
  if (status.ok()) status = CheckLength(host->from, host->value, kMaxHost);
  if (status.ok()) status = AddLabels(config, places, &identity);
  if (!status.ok()) return status;
  return identity;
}

}  // namespace tacho::agent

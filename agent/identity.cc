#include "agent/identity.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {
namespace {

// As tacho/v1/ingest.proto and types.proto state them.
constexpr size_t kMaxAgentId = 128;
constexpr size_t kMaxHost = 256;
constexpr size_t kMaxLabels = 32;
constexpr size_t kMaxLabelName = 128;
constexpr size_t kMaxLabelValue = 1024;

std::string SystemHostName() {
  std::array<char, 257> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

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

absl::Status CheckLabels(const std::map<std::string, std::string>& labels) {
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

}  // namespace

absl::StatusOr<Identity> ResolveIdentity(const config::v1::Agent::Identity& config,
                                         const std::function<std::string()>& host_name) {
  Identity identity{.agent_id = config.agent_id(), .host = config.host(), .labels = {}};
  identity.labels.insert(config.labels().begin(), config.labels().end());

  if (identity.agent_id.empty() || identity.host.empty()) {
    const std::string name = host_name ? host_name() : SystemHostName();
    if (name.empty()) {
      return absl::UnavailableError(
          "this machine has no host name; set identity.agent_id and identity.host");
    }
    if (identity.agent_id.empty()) identity.agent_id = name;
    if (identity.host.empty()) identity.host = name;
  }
  absl::Status status = CheckLength("identity.agent_id", identity.agent_id, kMaxAgentId);
  if (status.ok()) status = CheckLength("identity.host", identity.host, kMaxHost);
  if (status.ok()) status = CheckLabels(identity.labels);
  if (!status.ok()) return status;
  return identity;
}

}  // namespace tacho::agent

// Shows the agent's identity, what it knows of its machine, and where each fact came from.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/diagnose/context.h"
#include "agent/sources/identity/host_facts.h"
#include "agent/sources/identity/identity.h"
#include "agent/sources/identity/identity_source.h"

namespace tacho::agent {
namespace {

Finding WhoItIs(const Identity& identity, const HostFacts& facts) {
  Finding finding{
      .message = absl::StrCat("agent id ", identity.agent_id, " (", identity.agent_id_from,
                              "), host ", identity.host, " (", identity.host_from, ")"),
      .figures = {{"agent_id", identity.agent_id},
                  {"agent_id_from", identity.agent_id_from},
                  {"host", identity.host},
                  {"host_from", identity.host_from}}};
  for (const auto& [label, fact] : facts) finding.figures["label_" + label] = fact.value;
  if (absl::StartsWith(identity.host, "localhost")) {
    finding.severity = Severity::kWarning;
    absl::StrAppend(&finding.message, "; other machines have that name, too");
    finding.remedy = "name the machine, or set identity.host and identity.agent_id";
  }
  return finding;
}

Finding AboutMetadata(const Identity& identity, const absl::Status& status, bool wanted) {
  Finding finding{.subject = "metadata server"};
  if (!identity.metadata.has_value()) {
    finding.severity = Severity::kInfo;
    finding.message =
        wanted
            ? "not asked: the firmware does not identify a Google machine, and GCE_METADATA_HOST "
              "is not set"
            : "not asked: identity.discover or identity.metadata_server turns it off";
    return finding;
  }
  finding.message = absl::StrCat("answers at ", identity.metadata->authority());
  if (status.ok()) return finding;
  finding.severity = Severity::kWarning;
  finding.message = std::string(status.message());
  finding.remedy =
      "let pods reach it (hostNetwork, no network policy against 169.254.169.254), correct "
      "GCE_METADATA_HOST, or set identity.metadata_server to never: then the agent does not know "
      "the zone, the machine type and maintenance notices";
  return finding;
}

std::vector<Finding> CheckIdentity(const DiagnoseContext& context) {
  const auto identity = IdentityOf(context);
  if (!identity.ok()) {
    return {{.severity = Severity::kFailed,
             .message = std::string(identity.status().message()),
             .remedy = "correct the identity section of the configuration, or that variable"}};
  }
  HostFacts facts = identity->facts;
  absl::Status status;
  if (identity->metadata.has_value()) {
    MetadataFacts told = AskMetadata(*identity->metadata, IdentitySource::kBudget);
    facts.merge(told.facts);
    status = told.status;
  }
  const config::v1::Agent::Identity& config = context.config.identity();
  std::vector<Finding> findings = {WhoItIs(*identity, facts)};
  for (const auto& [label, fact] : facts) {
    findings.push_back({.subject = label,
                        .message = absl::StrCat(fact.value, ", from ", fact.from),
                        .figures = {{"value", fact.value}, {"from", fact.from}}});
  }
  findings.push_back(
      AboutMetadata(*identity, status, config.discover() && config.metadata_server() != "never"));
  return findings;
}

}  // namespace

absl::StatusOr<Identity> IdentityOf(const DiagnoseContext& context) {
  return ResolveIdentity(context.config.identity(), {.environment = context.environment,
                                                     .sys = context.config.sources().host().sys()});
}

std::vector<Check> IdentityChecks(const DiagnoseContext& context) {
  return {{.name = "identity",
           .deadline = context.timeout,
           .run = [context] { return CheckIdentity(context); },
           .remedy =
               "the look-up of a name hangs: the host's own (set identity.host), or the one in "
               "GCE_METADATA_HOST"}};
}

}  // namespace tacho::agent

#include "server/security/rights.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/errors/error_table.h"

namespace tacho::server::security {
namespace {

re2::StringPiece Piece(absl::string_view text) { return {text.data(), text.size()}; }

absl::string_view PatternOf(const JobPattern& pattern) {
  return pattern == nullptr ? absl::string_view(".*") : absl::string_view(pattern->pattern());
}

constexpr char kTokenPrefix[] = "token:";
constexpr char kCertificatePrefix[] = "certificate:";

// For a sentence. An owner without either prefix is shown as it is: the store may come from
// elsewhere.
std::string PhraseOf(absl::string_view owner) {
  if (absl::ConsumePrefix(&owner, kTokenPrefix)) return absl::StrCat("the token \"", owner, "\"");
  if (absl::ConsumePrefix(&owner, kCertificatePrefix)) {
    return absl::StrCat("the certificate \"", owner, "\"");
  }
  return absl::StrCat("\"", owner, "\"");
}

}  // namespace

std::string TokenOwner(absl::string_view name) { return absl::StrCat(kTokenPrefix, name); }

std::string CertificateOwner(absl::string_view name) {
  return absl::StrCat(kCertificatePrefix, name);
}

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kWrite:
      return "write";
    case Role::kRead:
      return "read";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

RightsPtr Rights::Everything() {
  return std::make_shared<const Rights>(
      Options{.name = "everybody", .write = true, .read = true, .admin = true});
}

bool Rights::Has(Role role) const {
  switch (role) {
    case Role::kWrite:
      return options_.write;
    case Role::kRead:
      return options_.read;
    case Role::kAdmin:
      return options_.admin;
  }
  return false;
}

absl::Status Rights::CheckRole(Role role) const {
  if (Has(role)) return absl::OkStatus();
  std::vector<absl::string_view> held;
  for (const Role one : {Role::kWrite, Role::kRead, Role::kAdmin}) {
    if (Has(one)) held.push_back(RoleName(one));
  }
  return errors::ErrorOf(errors::Failure::kForbidden,
                         absl::StrCat("\"", name(), "\" lacks the role ", RoleName(role),
                                      "; it has ", absl::StrJoin(held, ", ")));
}

bool Rights::MayTouch(absl::string_view job) const {
  return SeesEveryJob() || RE2::FullMatch(Piece(job), *options_.jobs);
}

std::string Rights::jobs_pattern() const {
  return SeesEveryJob() ? std::string() : options_.jobs->pattern();
}

absl::Status Rights::CheckJob(absl::string_view job, absl::string_view field) const {
  if (MayTouch(job)) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kForbidden,
                         absl::StrCat(field, ": \"", name(), "\" may not touch the job \"", job,
                                      "\", only those that match ", PatternOf(options_.jobs)));
}

absl::Status Rights::CheckAgentId(absl::string_view agent_id) const {
  std::string allowed;
  if (!options_.agent_id.empty() && options_.agent_id != agent_id) {
    allowed = absl::StrCat("only for \"", options_.agent_id, "\"");
  } else if (options_.agents != nullptr && !RE2::FullMatch(Piece(agent_id), *options_.agents)) {
    allowed = absl::StrCat("only for those that match ", options_.agents->pattern());
  }
  if (allowed.empty()) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kForbidden,
                         absl::StrCat("hello.agent_id: \"", name(), "\" may not speak for \"",
                                      agent_id, "\", ", allowed));
}

absl::Status Rights::RefuseAgentId(absl::string_view agent_id, absl::string_view owner) const {
  return errors::ErrorOf(
      errors::Failure::kForbidden,
      absl::StrCat(
          "hello.agent_id: \"", name(), "\" may not speak for \"", agent_id,
          "\": ", PhraseOf(owner), " used it first. If \"", name(),
          "\" is to take it over, give its entry of auth.tokens_file the key agents with a "
          "pattern that matches \"",
          agent_id, "\", and reload; else give the agent an identity.agent_id of its own"));
}

bool Rights::operator==(const Rights& other) const {
  const Options& a = options_;
  const Options& b = other.options_;
  return a.name == b.name && a.write == b.write && a.read == b.read && a.admin == b.admin &&
         a.agent_id == b.agent_id && a.expires == b.expires && a.owner == b.owner &&
         SeesEveryJob() == other.SeesEveryJob() && PatternOf(a.jobs) == PatternOf(b.jobs) &&
         IsGivenAgentIds() == other.IsGivenAgentIds() && PatternOf(a.agents) == PatternOf(b.agents);
}

}  // namespace tacho::server::security

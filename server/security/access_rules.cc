// Checks auth.tokens_file as a whole before any of it counts: a list with one mistake is refused,
// with the key that is wrong, because half a list would let the wrong peers in or out.
#include "server/security/access_rules.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/checked_file.h"
#include "proto/base/status_macros.h"
#include "proto/config/yaml_config.h"

namespace tacho::server::security {
namespace {

absl::Status WrongKey(const std::string& key, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(key, " ", problem));
}

}  // namespace

// Ten thousand tokens mostly have a few patterns between them.
class RulePatterns {
 public:
  absl::StatusOr<JobPattern> Get(const std::string& key, const std::string& text) {
    JobPattern& pattern = made_[text];
    if (pattern == nullptr) {
      RE2::Options options;
      options.set_log_errors(false);
      pattern = std::make_shared<const RE2>(text, options);
    }
    if (!pattern->ok()) return WrongKey(key, absl::StrCat("is no RE2: ", pattern->error()));
    return pattern;
  }

 private:
  std::map<std::string, JobPattern> made_;
};

namespace {

constexpr size_t kSha256HexDigits = 64;
constexpr char kAgentGroup[] = "agent_id";

absl::StatusOr<absl::Time> ParseExpiry(const std::string& key, const std::string& text) {
  absl::Time time = absl::InfiniteFuture();
  if (text.empty()) return time;
  std::string error;
  if (absl::ParseTime("%Y-%m-%d", text, &time, &error) ||
      absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return time;
  }
  return WrongKey(key, absl::StrCat("'", text,
                                    "' is not a time; expected e.g. 2027-01-31 or "
                                    "2027-01-31T12:00:00Z"));
}

absl::StatusOr<std::string> ParseSha256(const std::string& key, const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) {
      return WrongKey(key,
                      "is not hexadecimal; is it the token itself? Only its SHA-256 belongs here");
    }
  }
  if (text.size() != kSha256HexDigits) {
    return WrongKey(key, absl::StrCat("has ", text.size(), " digits; expected ", kSha256HexDigits));
  }
  return absl::HexStringToBytes(text);
}

// Both messages have these fields.
template <typename Entry>
absl::StatusOr<Rights::Options> MakeRights(const std::string& key, const Entry& entry,
                                           RulePatterns* patterns) {
  Rights::Options rights;
  rights.name = entry.name();
  for (const std::string& role : entry.roles()) {
    rights.write |= role == RoleName(Role::kWrite);
    rights.read |= role == RoleName(Role::kRead);
    rights.admin |= role == RoleName(Role::kAdmin);
  }
  if (entry.roles().empty())
    return WrongKey(key + ".roles", "is empty; expected write, read or admin");
  // Any pattern that is written otherwise is looked at for each job, which says the same.
  if (entry.jobs() != ".*") {
    auto jobs = patterns->Get(key + ".jobs", entry.jobs());
    if (!jobs.ok()) return jobs.status();
    rights.jobs = *std::move(jobs);
  }
  rights.agent_id = entry.agent_id();
  if (!entry.agents().empty()) {
    auto agents = patterns->Get(key + ".agents", entry.agents());
    if (!agents.ok()) return agents.status();
    rights.agents = *std::move(agents);
    if (!rights.agent_id.empty()) return WrongKey(key + ".agents", "excludes agent_id: give one");
  }
  return rights;
}

absl::Status CheckNameIsNew(const std::string& key, const std::string& name,
                            std::set<std::string>* names) {
  if (names->insert(name).second) return absl::OkStatus();
  return WrongKey(key + ".name", absl::StrCat("'", name, "' is given twice in this file"));
}

}  // namespace

const std::string* FindName(const RE2& pattern, const std::vector<std::string>& names,
                            std::string* group) {
  const auto& groups = pattern.NamedCapturingGroups();
  const auto wanted = groups.find(kAgentGroup);
  const int index = group == nullptr || wanted == groups.end() ? 0 : wanted->second;
  std::vector<re2::StringPiece> parts(static_cast<size_t>(index) + 1);
  for (const std::string& name : names) {
    if (!pattern.Match(name, 0, name.size(), RE2::ANCHOR_BOTH, parts.data(), index + 1)) continue;
    if (index > 0) *group = std::string(parts[static_cast<size_t>(index)]);
    return &name;
  }
  return nullptr;
}

absl::StatusOr<AccessRules::TokenRule> AccessRules::MakeTokenRule(
    const std::string& key, const config::v1::Access::Token& token, RulePatterns* patterns) {
  TACHO_ASSIGN_OR_RETURN(auto rights, MakeRights(key, token, patterns));
  const auto expires = ParseExpiry(key + ".expires", token.expires());
  if (!expires.ok()) return expires.status();
  rights.expires = *expires;
  rights.owner = TokenOwner(token.name());
  TokenRule rule{std::make_shared<const Rights>(std::move(rights)), nullptr};
  if (token.certificate().empty()) return rule;
  auto certificate = patterns->Get(key + ".certificate", token.certificate());
  if (!certificate.ok()) return certificate.status();
  rule.certificate = *std::move(certificate);
  return rule;
}

absl::StatusOr<AccessRules::CertificateRule> AccessRules::MakeCertificateRule(
    const std::string& key, const config::v1::Access::Certificate& certificate,
    RulePatterns* patterns) {
  TACHO_ASSIGN_OR_RETURN(auto rights, MakeRights(key, certificate, patterns));
  auto names = patterns->Get(key + ".names", certificate.names());
  if (!names.ok()) return names.status();
  const bool names_agent = (*names)->NamedCapturingGroups().count(kAgentGroup) > 0;
  if (names_agent && !certificate.agent_id().empty()) {
    return WrongKey(key + ".agent_id", "is given twice: here and as a group of names");
  }
  if (names_agent && rights.agents != nullptr) {
    return WrongKey(key + ".agents", "is given twice: here and as a group of names");
  }
  return CertificateRule{*std::move(names), std::move(rights), names_agent};
}

absl::StatusOr<AccessRules> AccessRules::Make(const config::v1::Access& access,
                                              const BlindIndex* index) {
  AccessRules rules;
  RulePatterns patterns;
  std::set<std::string> names;
  for (int i = 0; i < access.tokens_size(); ++i) {
    const auto& token = access.tokens(i);
    const std::string key = absl::StrCat("tokens[", i, "]");
    TACHO_RETURN_IF_ERROR(CheckNameIsNew(key, token.name(), &names));
    const auto sha256 = ParseSha256(key + ".sha256", token.sha256());
    if (!sha256.ok()) return sha256.status();
    TACHO_ASSIGN_OR_RETURN(auto rule, MakeTokenRule(key, token, &patterns));
    if (!rules.tokens_.emplace(index->KeyOf(*sha256), std::move(rule)).second) {
      return WrongKey(key + ".sha256", "belongs to another token in this file as well");
    }
  }
  for (int i = 0; i < access.certificates_size(); ++i) {
    const auto& certificate = access.certificates(i);
    const std::string key = absl::StrCat("certificates[", i, "]");
    TACHO_RETURN_IF_ERROR(CheckNameIsNew(key, certificate.name(), &names));
    TACHO_ASSIGN_OR_RETURN(auto rule, MakeCertificateRule(key, certificate, &patterns));
    rules.certificates_.push_back(std::move(rule));
  }
  if (rules.tokens_.empty() && rules.certificates_.empty()) {
    return absl::InvalidArgumentError("has neither tokens nor certificates, so it lets nobody in");
  }
  return rules;
}

absl::StatusOr<AccessRules> AccessRules::Load(const std::string& path, const BlindIndex* index) {
  TACHO_ASSIGN_OR_RETURN(const auto text,
                         config::ReadCheckedFile(path, config::FileTrust::kTrusted));
  config::v1::Access access;
  TACHO_RETURN_IF_ERROR(config::ParseYaml(text, path, &access));
  auto rules = Make(access, index);
  if (rules.ok()) return rules;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", rules.status().message()));
}

const AccessRules::TokenRule* AccessRules::FindToken(absl::string_view key) const {
  const auto found = tokens_.find(key);
  return found == tokens_.end() ? nullptr : &found->second;
}

RightsPtr AccessRules::FindCertificate(const PeerCertificate& certificate) const {
  for (const CertificateRule& rule : certificates_) {
    Rights::Options rights = rule.rights;
    const std::string* const name =
        FindName(*rule.names, certificate.names, rule.names_agent ? &rights.agent_id : nullptr);
    if (name == nullptr) continue;
    // A group that matched nothing must not stand for every agent.
    if (rule.names_agent && rights.agent_id.empty()) continue;
    // A rule may be for a thousand certificates, and each is an owner of its own.
    rights.owner = CertificateOwner(*name);
    return std::make_shared<const Rights>(std::move(rights));
  }
  return nullptr;
}

}  // namespace tacho::server::security

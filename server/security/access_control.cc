#include "server/security/access_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"

namespace tacho::server::security {
namespace {

constexpr char kHowToShowOne[] =
    "agents: collector.token_file; tachoctl: --token-file; others: the header 'authorization: "
    "Bearer TOKEN', or over HTTP the token as the password of basic authentication";

absl::Status Unauthenticated(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kUnauthenticated, text);
}

absl::Status NoRuleFor(const PeerCertificate& certificate) {
  return Unauthenticated(absl::StrCat(
      "no token was sent, and no rule of auth.tokens_file is for a certificate with the "
      "names ",
      absl::StrJoin(certificate.names, ", ")));
}

}  // namespace

Caller Caller::Anyone() {
  Caller caller;
  caller.rights_ = Rights::Everything();
  return caller;
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Create(
    const config::v1::Collector::Auth& auth, AccessControlOptions options) {
  std::unique_ptr<AccessControl> control(new AccessControl(std::move(options)));
  TACHO_ASSIGN_OR_RETURN(auto rules, control->LoadRules(auth.tokens_file()));
  absl::MutexLock lock(&control->mutex_);
  control->rules_ = std::move(rules);
  return control;
}

absl::StatusOr<AccessControl::RulesPtr> AccessControl::LoadRules(
    const std::string& tokens_file) const {
  if (tokens_file.empty()) return nullptr;
  auto rules = AccessRules::Load(tokens_file, &index_);
  if (rules.ok()) return std::make_shared<const AccessRules>(*std::move(rules));
  return absl::Status(rules.status().code(),
                      absl::StrCat("auth.tokens_file: ", rules.status().message()));
}

AccessControl::RulesPtr AccessControl::rules() const {
  absl::MutexLock lock(&mutex_);
  return rules_;
}

bool AccessControl::enabled() const { return rules() != nullptr; }

absl::Status AccessControl::Refuse(absl::Status status, const Credentials& shown) const {
  if (options_.on_refusal) options_.on_refusal(status, shown.peer);
  return status;
}

absl::StatusOr<Caller> AccessControl::Look(const Credentials& shown) const {
  Caller caller;
  caller.certificate_ = shown.certificate;
  const RulesPtr rules = this->rules();
  if (rules != nullptr && !shown.token.empty()) {
    if (shown.token.size() > kMaxTokenBytes) {
      return Unauthenticated(absl::StrCat("the token is longer than ", kMaxTokenBytes, " bytes"));
    }
    caller.token_key_ = index_.KeyOf(Sha256(shown.token));
  }
  return Resolve(rules, std::move(caller));
}

absl::StatusOr<Caller> AccessControl::Authenticate(const Credentials& shown) const {
  auto caller = Look(shown);
  if (!caller.ok()) return Refuse(caller.status(), shown);
  return caller;
}

absl::StatusOr<Caller> AccessControl::Admit(const Credentials& shown, Role role) const {
  auto caller = Look(shown);
  if (!caller.ok()) return Refuse(caller.status(), shown);
  if (auto s = caller->rights().CheckRole(role); !s.ok()) return Refuse(std::move(s), shown);
  return caller;
}

absl::StatusOr<RightsPtr> AccessControl::FindRights(const AccessRules& rules,
                                                    const Caller& caller) const {
  const auto& certificate = caller.certificate_;
  if (!caller.token_key_.empty()) {
    const AccessRules::TokenRule* const rule = rules.FindToken(caller.token_key_);
    if (rule == nullptr) {
      return Unauthenticated("the token is not in auth.tokens_file: it was mistyped or removed");
    }
    const bool is_bound = rule->certificate != nullptr;
    if (is_bound && (!certificate.has_value() ||
                     FindName(*rule->certificate, certificate->names, nullptr) == nullptr)) {
      return Unauthenticated(
          absl::StrCat("the token \"", rule->rights->name(),
                       "\" counts only together with the certificate that it is bound to"));
    }
    return rule->rights;
  }
  if (!certificate.has_value()) {
    return Unauthenticated(absl::StrCat("no token was sent (", kHowToShowOne, ")"));
  }
  RightsPtr rights = rules.FindCertificate(*certificate);
  if (rights == nullptr) return NoRuleFor(*certificate);
  return rights;
}

absl::StatusOr<Caller> AccessControl::Resolve(const RulesPtr& rules, Caller caller) const {
  absl::StatusOr<RightsPtr> rights = everything_;
  if (rules != nullptr) rights = FindRights(*rules, caller);
  if (!rights.ok()) return rights.status();
  caller.rights_ = *std::move(rights);
  caller.valid_until_ = caller.rights_->expires();
  if (caller.certificate_.has_value()) {
    caller.valid_until_ = std::min(caller.valid_until_, caller.certificate_->not_after);
  }
  if (options_.now() < caller.valid_until_) return caller;
  return Unauthenticated(absl::StrCat("what \"", caller.rights_->name(), "\" shows expired at ",
                                      absl::FormatTime(caller.valid_until_, absl::UTCTimeZone())));
}

absl::Status AccessControl::Recheck(const Caller& caller) const {
  TACHO_ASSIGN_OR_RETURN(auto now, Resolve(rules(), caller));
  if (now.rights() == caller.rights()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the rights of \"", caller.rights().name(), "\" have changed: connect again"));
}

absl::StatusOr<std::function<void()>> AccessControl::Prepare(const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto loaded, LoadRules(config.auth().tokens_file()));
  return [this, rules = std::move(loaded)]() mutable {
    absl::MutexLock lock(&mutex_);
    rules_ = std::move(rules);
  };
}

}  // namespace tacho::server::security

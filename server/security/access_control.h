// Decides who is let in: turns what a peer shows into what it may do, and withdraws that again.
//
// Trust boundary: everything in Credentials comes from the network, except `certificate`, which the
// TLS handshake has verified. docs/security.md has the whole picture.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/process/reloadable.h"
#include "server/security/access_rules.h"
#include "server/security/rights.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

// The proofs that a peer shows.
struct Credentials {
  std::string token;  // Empty: none.
  std::optional<PeerCertificate> certificate;
  std::string peer;  // Its address, for the log.
};

struct AccessControlOptions {
  std::function<absl::Time()> now = absl::Now;
  // Called for each refusal of Authenticate() and Admit(), on the caller's thread; may be null.
  std::function<void(const absl::Status&, absl::string_view peer)> on_refusal;
};

// A peer that was let in. Holds no token, only its keyed hash.
class Caller {
 public:
  // Without authentication: may do everything, without end.
  static Caller Anyone();

  const Rights& rights() const { return *rights_; }
  const RightsPtr& rights_ptr() const { return rights_; }
  // When what it showed expires.
  absl::Time valid_until() const { return valid_until_; }

 private:
  friend class AccessControl;
  RightsPtr rights_;
  absl::Time valid_until_ = absl::InfiniteFuture();
  std::string token_key_;  // Empty: it showed no token.
  std::optional<PeerCertificate> certificate_;
};

// Thread-safe.
class AccessControl final : public process::Reloadable {
 public:
  // Reads auth.tokens_file, if there is one.
  //   as AccessRules::Load(); each text begins with the key.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Create(
      const config::v1::Collector::Auth& auth, AccessControlOptions options = {});

  // Whether there is authentication at all. Without it everybody may do everything.
  bool enabled() const ABSL_LOCKS_EXCLUDED(mutex_);

  // If the peer sends a token, the token alone decides; else the certificate does.
  //   UNAUTHENTICATED    the peer shows nothing, or something unknown or expired, or a token
  //                      without the certificate that it is bound to. The text never holds a token.
  absl::StatusOr<Caller> Authenticate(const Credentials& shown) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, and PERMISSION_DENIED without the role.
  absl::StatusOr<Caller> Admit(const Credentials& shown, Role role) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a caller that was let in may continue: for long streams.
  //   UNAUTHENTICATED  what it showed has expired or was removed.
  //   UNAVAILABLE      its rights have changed: it must connect again.
  absl::Status Recheck(const Caller& caller) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Reloadable; takes auth.tokens_file. Holders of Callers recheck them afterwards.
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  using RulesPtr = std::shared_ptr<const AccessRules>;

  explicit AccessControl(AccessControlOptions options) : options_(std::move(options)) {}
  // Null if `tokens_file` is empty.
  absl::StatusOr<RulesPtr> LoadRules(const std::string& tokens_file) const;
  RulesPtr rules() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Caller> Look(const Credentials& shown) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Refuse(absl::Status status, const Credentials& shown) const;
  // The rights that the rules give for what it shows.
  absl::StatusOr<RightsPtr> FindRights(const AccessRules& rules, const Caller& caller) const;
  // `caller` with its rights and their expiry.
  absl::StatusOr<Caller> Resolve(const RulesPtr& rules, Caller caller) const;

  const AccessControlOptions options_;
  const BlindIndex index_;
  const RightsPtr everything_ = Rights::Everything();
  mutable absl::Mutex mutex_;
  RulesPtr rules_ ABSL_GUARDED_BY(mutex_);  // Null: no authentication.
};

}  // namespace tacho::server::security

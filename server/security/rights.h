// The rights of one caller, by its token or its client certificate.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "re2/re2.h"

namespace tacho::server::security {

enum class Role {
  kWrite,  // Ingest.
  kRead,   // Query, /metrics.
  kAdmin,  // Admin.
};
absl::string_view RoleName(Role role);

// The owner of agent_ids as it is stored: "token:" and the name of the token in auth.tokens_file,
// which stays the same when the token is replaced; or "certificate:" and the name of the
// certificate that its rule matched, for example "certificate:DNS:host-7.example".
std::string TokenOwner(absl::string_view name);
std::string CertificateOwner(absl::string_view name);

using JobPattern = std::shared_ptr<const RE2>;

// Immutable, so thread-safe. The statuses are PERMISSION_DENIED, with a text for the caller that
// names the caller, what was not allowed, and what would be.
class Rights {
 public:
  struct Options {
    std::string name;
    bool write = false;
    bool read = false;
    bool admin = false;
    JobPattern jobs;  // Anchored at both ends. Null: every job.
    // The owner of the agent_ids that these rights are the first to use: TokenOwner() or
    // CertificateOwner(). The store keeps it. Empty: these rights never own an id.
    std::string owner;
    std::string agent_id;  // The only one that may be used; empty: any.
    JobPattern agents;     // The only ones that may be used. Anchored at both ends. Null: any.
    absl::Time expires = absl::InfiniteFuture();
  };
  explicit Rights(Options options) : options_(std::move(options)) {}

  // Everything, without end: for when there is no authentication.
  static std::shared_ptr<const Rights> Everything();

  const std::string& name() const { return options_.name; }
  const std::string& owner() const { return options_.owner; }
  absl::Time expires() const { return options_.expires; }

  bool Has(Role role) const;
  absl::Status CheckRole(Role role) const;
  bool SeesEveryJob() const { return options_.jobs == nullptr; }
  bool MayTouch(absl::string_view job) const;
  // RE2; empty: every job.
  std::string jobs_pattern() const;
  // `field` is where the caller named the job: "layout.source.job", "selector.job".
  absl::Status CheckJob(absl::string_view job, absl::string_view field) const;
  absl::Status CheckAgentId(absl::string_view agent_id) const;
  // Whether an operator has given it agent_ids by name: then it may use those that CheckAgentId()
  // allows whoever used them first.
  bool IsGivenAgentIds() const { return !options_.agent_id.empty() || options_.agents != nullptr; }
  // The refusal of an agent_id that `owner`, another than owner(), used first.
  absl::Status RefuseAgentId(absl::string_view agent_id, absl::string_view owner) const;

  // Whether both allow the same.
  bool operator==(const Rights& other) const;

 private:
  const Options options_;
};

using RightsPtr = std::shared_ptr<const Rights>;

}  // namespace tacho::server::security

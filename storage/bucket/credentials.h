// What a bucket lets us in by, and its renewal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"

namespace tacho::storage {

// Either a pair of keys, which sign each request, or a token that is sent along.
struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // Beside keys that expire.
  std::string bearer;         // OAuth 2.0; then there are no keys.
  std::string source;         // For errors: "the environment (AWS_ACCESS_KEY_ID)".
  // From the moment at which they were fetched.
  absl::Duration lifetime = absl::InfiniteDuration();
};

//   UNAVAILABLE        the source does not answer, or has a fault of its own: try later.
//   PERMISSION_DENIED  there are none, or the source refuses; the text names it.
using FetchCredentials = std::function<absl::StatusOr<Credentials>()>;

// Holds credentials and fetches new ones before they expire, on a thread that asks for them.
// Thread-safe.
class CredentialKeeper {
 public:
  static constexpr absl::Duration kRenewBefore = absl::Minutes(5);
  static constexpr absl::Duration kPause = absl::Seconds(10);  // After a renewal that failed.

  explicit CredentialKeeper(FetchCredentials fetch, std::function<absl::Time()> now = MonotonicNow)
      : fetch_(std::move(fetch)), now_(std::move(now)) {}

  // Those that are held; a renewal that fails keeps them, also when they have expired: then the
  // service says so. One thread fetches, and others wait only if there are none yet.
  //   as FetchCredentials
  absl::StatusOr<Credentials> Get() ABSL_LOCKS_EXCLUDED(mutex_);

  // The service calls these expired: the next Get() fetches others, unless it has.
  void Refuse(const Credentials& used) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Credentials> Take(absl::StatusOr<Credentials> fetched) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !fetching_; }

  const FetchCredentials fetch_;
  const std::function<absl::Time()> now_;
  absl::Mutex mutex_;
  bool fetching_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Credentials> held_ ABSL_GUARDED_BY(mutex_);
  absl::Time renew_at_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // Of the last fetch.
};

}  // namespace tacho::storage

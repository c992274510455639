// Remembers the credentials of callers whose calls reach gRPC through another door of this process:
// the HTTP port.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/security/access_control.h"

namespace tacho::server::security {

// Metadata of an in-process call: the handle of its caller.
inline constexpr char kBridgedCallerMetadata[] = "tacho-caller-bin";

// An in-process call carries neither a client certificate nor the address of the client. So the
// door notes both here, and the call carries a handle. CredentialsOf() believes a handle only in an
// in-process call: from a socket it is worth nothing. Thread-safe.
class BridgedCallers {
 public:
  // A caller, until this goes. It outlives the call.
  class Entry {
   public:
    Entry(BridgedCallers* callers, std::string handle)
        : callers_(callers), handle_(std::move(handle)) {}
    ~Entry() { callers_->Remove(handle_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    const std::string& handle() const { return handle_; }  // 128 random bits.

   private:
    BridgedCallers* const callers_;
    const std::string handle_;
  };

  // There is one for the process, because gRPC's context of a call leads to no object of ours.
  // Handles are random, so that several collectors in one process do not meet.
  static BridgedCallers& OfProcess();

  std::unique_ptr<Entry> Add(Credentials shown) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if there is no such caller.
  bool Find(absl::string_view handle, Credentials* shown) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Remove(const std::string& handle) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Credentials> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::security

// Calls that this collector makes of other members of its cluster, for callers who asked it about
// jobs that they keep. docs/cluster.md has the whole picture.
//
// A call is passed on with its request, the caller's token and deadline, and its cancellation. The
// messages and the status with its details come back. Such a call has the metadata
// kForwardedMetadata, and its receiver answers from what it keeps itself. So a call is passed on
// once at most, even if two members have different lists of members. Where shards move, twice:
// right after a takeover the first one may have asked the old owner, which has another shard by
// now.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/cluster/membership.h"
#include "server/security/access_control.h"
#include "server/security/bridged_callers.h"

namespace tacho::server::cluster {

// Metadata of a call that a member has passed on: "1", or "2" the second time.
inline constexpr char kForwardedMetadata[] = "tacho-forwarded";

struct ForwardOptions {
  const Membership* membership = nullptr;           // Not owned; must outlive the calls.
  const security::AccessControl* access = nullptr;  // Not owned; null lets everybody do everything.
  prometheus::Registry* registry = nullptr;         // Not owned; counts calls by result.
  bool writes = false;  // tacho_writes_forwarded_total counts, and not that of queries.
  std::function<absl::Time()> now = absl::Now;
};

// Who asks, and until when.
struct Asker {
  security::Credentials shown;
  std::chrono::system_clock::time_point deadline;
  bool was_passed_on = false;  // By another member.
};

// Thread-safe.
class ForwardCalls {
 public:
  explicit ForwardCalls(ForwardOptions options);
  // Waits for the calls that are open. They end when their callers' calls do.
  ~ForwardCalls();

  // `channel` leads to the server of this process, without a limit on the size of messages. To be
  // called before the server takes calls.
  void SetOwn(std::shared_ptr<grpc::Channel> channel) { own_ = std::move(channel); }
  // Refuses further calls with UNAVAILABLE and cancels the open ones. Call before the server's
  // Shutdown().
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);

  // The member that is to be asked about the job; nullopt: the answer is made here.
  std::optional<uint32_t> OwnerElsewhere(const grpc::CallbackServerContext& context,
                                         absl::string_view job) const;
  // Whether other members know who a caller is that has shown this.
  bool CanPass(const security::Credentials& shown) const;
  // Whether a call about the job is to be put together from what all members say of their parts.
  bool AsksParts(const grpc::CallbackServerContext& context, absl::string_view job) const {
    return membership().IsSplit(job) && AsksAll(context);
  }
  // Whether a call about all jobs is to be answered from the answers of all members.
  bool AsksAll(const grpc::CallbackServerContext& context) const;

  // Lets a caller in whose call is to be passed on; its rights are checked by the member that
  // answers.
  //   UNAUTHENTICATED    as AccessControl::Authenticate().
  //   PERMISSION_DENIED  it shows nothing but a client certificate, which cannot be passed on.
  //   UNAVAILABLE        the collector is draining.
  absl::StatusOr<Asker> Admit(const grpc::CallbackServerContext& context) const;
  // The same of a caller who did not come by gRPC.
  absl::StatusOr<Asker> Admit(Asker asker) const;

  const Membership& membership() const { return *options_.membership; }
  absl::Time now() const { return options_.now(); }
  // The statuses of failed calls spread the retries of their callers.
  uint64_t NextSpread() { return ++answers_; }

  // One call of a member.
  class Call {
   public:
    Call(ForwardCalls* calls, uint32_t shard, const Asker& asker);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // To the member; this collector's own one is reached within the process.
    std::shared_ptr<grpc::Channel> channel() const;
    grpc::ClientContext* context() { return context_.get(); }
    void Cancel() { context_->TryCancel(); }
    uint32_t shard() const { return shard_; }
    // Counts the call's end. Returns the status for the caller: the member's own, or UNAVAILABLE
    // with its address if it could not be reached.
    grpc::Status Ended(const grpc::Status& status);

   private:
    // Counts as open while it lives.
    class Entry {
     public:
      explicit Entry(ForwardCalls* calls);
      ~Entry();
      Entry(const Entry&) = delete;
      Entry& operator=(const Entry&) = delete;

     private:
      ForwardCalls* const calls_;
    };

    const Entry
        entry_;  // The first member, so that it goes after the context, which has a channel.
    ForwardCalls* const calls_;
    const uint32_t shard_;
    std::unique_ptr<security::BridgedCallers::Entry> caller_;  // Of a call within the process.
    const std::shared_ptr<grpc::ClientContext> context_;
  };

 private:
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  const ForwardOptions options_;
  prometheus::Counter& answered_;
  prometheus::Counter& refused_;
  prometheus::Counter& unreachable_;
  std::shared_ptr<grpc::Channel> own_;
  std::atomic<uint64_t> answers_ = 0;
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<std::shared_ptr<grpc::ClientContext>> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::cluster

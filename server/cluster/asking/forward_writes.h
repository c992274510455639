// Passes on what other tools have written about jobs that other members keep. Each part is one call
// with the sender's token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/interop/passing/elsewhere.h"

namespace tacho::server::cluster {

// Thread-safe. Its destructor waits for the calls that are open.
class ForwardWrites final : public interop::Elsewhere {
 public:
  // A member has so long to answer. Prometheus gives up after 30 s by default.
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  // So many bytes may be on their way in all. More is refused with UNAVAILABLE (OVERLOADED).
  static constexpr size_t kMaxBytes = size_t{128} << 20;
  // So many bytes may wait for the answer of one member; further parts wait here. A member takes
  // much more than ingest.max_message_bytes in calls that are not answered for a flood.
  static constexpr size_t kMaxUnanswered = size_t{2} << 20;
  // The body of a push may have so many.
  static constexpr size_t kMaxPushBytes = size_t{1} << 20;

  explicit ForwardWrites(ForwardOptions options)
      : lanes_(options.membership->shards()), calls_(std::move(options)) {}

  // As ForwardCalls::Drain(). Parts that wait are refused in the same way.
  void Drain() { calls_.Drain(); }

  bool CanPass(const interop::Sender& sender) const override {
    return !sender.passed_on && calls_.CanPass(sender.shown);
  }
  void StoreSeries(uint32_t shard, const interop::Sender& sender, v1::StoreSeriesRequest request,
                   Done done) override;
  void StoreEvents(uint32_t shard, const interop::Sender& sender, v1::StoreEventsRequest request,
                   Done done) override;
  void Push(uint32_t shard, const interop::Sender& sender, v1::PushRequest request,
            PushDone done) override;

 private:
  // The way to one member.
  struct Lane {
    size_t unanswered = 0;  // Bytes.
    std::deque<std::pair<size_t, std::function<void()>>>
        waiting;  // Bytes, and what begins the call.
  };
  // False: there is too much already.
  bool Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins a call, now or when there is room.
  void Begin(uint32_t shard, size_t bytes, std::function<void()> call) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call has ended, whose object still lives.
  void End(uint32_t shard, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  template <typename Request, typename Response>
  void Call(uint32_t shard, const char* method, const interop::Sender& sender, Request request,
            std::function<void(const absl::Status&, Response&)> done);
  // What the sender hears when a call has ended. It tries again if the shard has moved, or if the
  // member's version does not know the call.
  absl::Status StatusOf(const grpc::Status& status, uint32_t shard) const;

  absl::Mutex mutex_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);  // By shard.
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;         // In all of them.
  ForwardCalls
      calls_;  // The last member, since its destructor waits for calls that use the others.
};

}  // namespace tacho::server::cluster

// Every connection to the gRPC port: how many there are, of whom, and whether they behave.
//
// gRPC 1.51 closes no connection for what it does with HTTP/2 frames (resets, settings, tiny or
// unfinished messages), and has no cap on connections. Here each is known by its descriptor, so
// that it can be counted, and shut down from outside. That a descriptor is still the same socket is
// told by its inode, as gRPC closes it without a word.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/edge/gate.h"
#include "server/edge/memory_budget.h"
#include "server/edge/peer_address.h"
#include "server/edge/token_bucket.h"

namespace tacho::server::edge {

// What a connection has brought that was of use. Thread-safe.
struct ConnectionUse {
  std::atomic<uint64_t> messages{0};
  std::atomic<uint64_t> message_bytes{0};
  std::atomic<uint64_t> calls{0};
  TokenBucket starts;
};

// Thread-safe.
class ConnectionTable final : public Gate {
 public:
  struct Limits {
    uint64_t max_connections = 0;
    uint64_t max_per_address = 0;
    // Of calls that are not answered; a second's worth may come at once. 0: no limit.
    uint32_t starts_per_second = 0;
    uint64_t max_message_bytes = 4u << 20;
    // A connection without a call is closed after this long, and so is one with an unfinished
    // message.
    absl::Duration patience = absl::Seconds(20);
  };
  struct Options {
    Limits limits;
    prometheus::Registry* registry = nullptr;  // Not owned.
    // Whether memory is too short for another connection.
    std::function<bool()> memory_short = [] { return false; };
    std::function<void(absl::string_view)> log;  // May be null.
    std::function<uint64_t()> resident = ResidentBytes;
  };
  explicit ConnectionTable(Options options);

  void SetLimits(const Limits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  bool Admit(int fd, const PeerAddress& peer, absl::Time now) override ABSL_LOCKS_EXCLUDED(mutex_);

  // The connection of a call, by grpc::ServerContext::peer(); nullptr if it is not known.
  std::shared_ptr<ConnectionUse> Find(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call has begun. A connection that starts too many is shut down.
  void CountStart(absl::string_view peer, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call of the connection was answered, and its client waited for it: it is no start too many. A
  // client may ask one thing after another as fast as it is answered.
  void CountAnswer(ConnectionUse* use) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets what has closed, shuts down what misbehaves. Looks at new and suspicious connections
  // each time, at all of them every 2 s and whenever the process grows fast. An address whose
  // connection was shut down for a flood, or of which many end without a call, gets no more than a
  // few new ones a second for a while. Whether new or suspicious ones are left.
  bool Sweep(absl::Time now) override ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return connections_.size();
  }

 private:
  struct Connection {
    ino_t inode = 0;
    PeerAddress peer;
    absl::Time since;
    std::shared_ptr<ConnectionUse> use = std::make_shared<ConnectionUse>();
    // As of the last look.
    absl::Time looked;
    double waste = 0;       // Bytes received beyond what is explained, all in all.
    double debt = 0;        // Of them, what has not been forgiven with time.
    uint64_t messages = 0;  // And since when there was no other, with what waste.
    absl::Time quiet_since;
    double quiet_waste = 0;
  };
  using Connections = absl::flat_hash_map<int, Connection>;  // By descriptor.

  struct Network {
    uint64_t connections = 0;
    absl::Time penalty_until = absl::InfinitePast();
    TokenBucket admitted;  // While there is a penalty.
    TokenBucket vain;      // Connections that ended without a call.

    // As good as new.
    bool IsForgettable(absl::Time now) const;
  };

  // Why there is no room for another; nullptr if there is.
  const char* Refusal(const PeerAddress& network, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtSome(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtAll(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAt(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutDown(Connections::iterator connection, const char* reason, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One that has closed by itself, or was closed by gRPC.
  void ForgetEnded(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why the connection is to be shut down; nullptr if it is not.
  const char* Judge(int fd, Connection* connection, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  prometheus::Gauge& limit_;
  prometheus::Gauge& used_;
  prometheus::Family<prometheus::Counter>& refused_;
  prometheus::Family<prometheus::Counter>& closed_;
  mutable absl::Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<PeerAddress, int> by_peer_ ABSL_GUARDED_BY(mutex_);
  absl::node_hash_map<PeerAddress, Network> by_network_ ABSL_GUARDED_BY(mutex_);
  // Shut down since the last sweep, for the log and the counters.
  std::vector<std::pair<PeerAddress, const char*>> shut_down_ ABSL_GUARDED_BY(mutex_);
  std::deque<int> suspects_
      ABSL_GUARDED_BY(mutex_);  // To be looked at before the next sweep of all.
  absl::Time looked_for_closed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time swept_all_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t resident_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time resident_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace tacho::server::edge

// Every connection to the gRPC port: how many there are, whose they are, and whether they behave.
//
// gRPC 1.51 closes no connection for abusing HTTP/2 frames (resets, settings, tiny or unfinished
// messages), and does not limit connections. This table knows each one by its descriptor, so that
// it can count it and shut it down from outside. gRPC closes descriptors without notice; the inode
// shows whether a descriptor is still the same socket.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
#include "server/edge/listener.h"
#include "server/edge/memory_budget.h"
#include "server/edge/peer_address.h"
#include "server/edge/refusal_answers.h"
#include "server/edge/token_bucket.h"

namespace tacho::server::edge {

// The useful part of what a connection has sent. Thread-safe.
struct ConnectionUse {
  std::atomic<uint64_t> messages{0};
  std::atomic<uint64_t> message_bytes{0};
  std::atomic<uint64_t> calls{0};
  // An agent's Hello was answered with a Welcome on it, or a request of OpenTelemetry: it is no
  // stranger's.
  std::atomic<bool> welcomed{false};
  TokenBucket starts;
};

// Thread-safe. Readers and writers have places of their own: a quarter of the connections, of each
// address and of all together, is not for those that have only asked queries, so that no number of
// watches keeps an agent out. The first call shows what a connection is for.
class ConnectionTable final : public Gate {
 public:
  enum class Caller { kReader, kWriter };  // kWriter: an agent, or OpenTelemetry.

  struct Limits {
    uint64_t max_connections = 0;
    uint64_t max_per_address = 0;
    // Calls that are not answered; those of one second may come at once. 0: no limit.
    uint32_t starts_per_second = 0;
    uint64_t max_message_bytes = 4u << 20;
    // As much of one message is read on a connection with a welcomed agent, to name the limit.
    uint64_t max_read_bytes = 8u << 20;
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
    // A client of a port with TLS understands no word before its handshake.
    bool answer_refused = true;
  };
  explicit ConnectionTable(Options options);

  void SetLimits(const Limits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  // Answers some of the clients that it refuses with the reason in words.
  bool Admit(int fd, const PeerAddress& peer, absl::Time now) override ABSL_LOCKS_EXCLUDED(mutex_);

  // The connection of a call, by grpc::ServerContext::peer(); nullptr if it is not known.
  std::shared_ptr<ConnectionUse> Find(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call has begun. A connection that starts too many is shut down, and so is one that reads if
  // there is no place for another reader.
  void CountStart(absl::string_view peer, Caller caller, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A call was answered while its client waited, so it no longer counts as a start: a client may
  // ask one thing after another as fast as it gets answers.
  void CountAnswer(ConnectionUse* use) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets connections that have closed and shuts down those that misbehave. Checks new and
  // suspicious connections each time, and all of them every 2 s and whenever the process grows
  // fast. An address gets only a few new connections a second for a while if one of its connections
  // was shut down for a flood, or if many of them end without a call. An agent that was welcomed
  // means no harm when it sends too much at once: it alone is shut down, unless that happens often.
  // Returns whether new or suspicious connections are left.
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
    std::optional<Caller> caller;  // After the first call. One call to write makes a writer.
    // At the last check:
    absl::Time looked;
    double waste = 0;       // All bytes received that no message or call explains.
    double debt = 0;        // The part of them that time has not forgiven.
    uint64_t messages = 0;  // Since quiet_since there was no other; the waste was quiet_waste.
    absl::Time quiet_since;
    double quiet_waste = 0;
  };
  using Connections = absl::flat_hash_map<int, Connection>;  // By descriptor.

  struct Network {
    uint64_t connections = 0;
    uint64_t readers = 0;
    absl::Time penalty_until = absl::InfinitePast();
    const char* penalty_for = "";  // The reason for it, in words.
    TokenBucket admitted;          // While there is a penalty.
    TokenBucket vain;              // Connections that ended without a call.
    TokenBucket mistakes;          // Connections of welcomed agents that were shut down.

    // Forgetting it changes nothing.
    bool IsForgettable(absl::Time now) const;
  };

  // Why a connection of the network is refused for the reason, for its client.
  std::string InWords(absl::string_view reason, const PeerAddress& network, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The reason to refuse another connection; nullptr if there is none.
  const char* Refusal(const PeerAddress& network, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtSome(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtAll(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAt(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The reason to refuse a connection that reads: there is no place for another. Else nullptr.
  const char* SetCaller(Connection* connection, Caller caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutDown(Connections::iterator connection, const char* reason, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer or gRPC has closed it.
  void ForgetEnded(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Connections::iterator connection, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the reason tells against all who share the address.
  bool IsHostile(const Connection& connection, const char* reason, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The reason to shut the connection down; nullptr if there is none.
  const char* Judge(int fd, Connection* connection, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  RefusalAnswers answers_;
  prometheus::Gauge& limit_;
  prometheus::Gauge& used_;
  prometheus::Family<prometheus::Counter>& refused_;
  prometheus::Family<prometheus::Counter>& closed_;
  mutable absl::Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t readers_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<PeerAddress, int> by_peer_ ABSL_GUARDED_BY(mutex_);
  absl::node_hash_map<PeerAddress, Network> by_network_ ABSL_GUARDED_BY(mutex_);
  // Shut down since the last sweep, for the log and the counters.
  std::vector<std::pair<PeerAddress, const char*>> shut_down_ ABSL_GUARDED_BY(mutex_);
  std::deque<int> suspects_ ABSL_GUARDED_BY(mutex_);  // Checked before the next sweep of all.
  absl::Time looked_for_closed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time swept_all_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t resident_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time resident_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace tacho::server::edge

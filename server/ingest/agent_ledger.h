// Agents: which stream speaks for which, and what is known of each, for the conditions of jobs:
// whether it is connected, when it was last heard, how far its clock is off, what it lost, and for
// which hosts it speaks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::ingest {

// Which stream speaks for which agent. Thread-safe.
class AgentRegistry {
 public:
  // A stream that asks to speak for an agent, or does.
  struct Claimant {
    uint64_t generation = 0;
    std::string owner;    // As Rights::owner().
    uint64_t stream = 0;  // Any number unique among live streams.
    std::function<void()> evict;
  };

  // Makes the claimant's stream speak for the agent. It must have the agent's id already: the owner
  // is not checked here. An older stream of the same generation is one whose connection died
  // unnoticed, and one of another owner has lost the id: its `evict` is called, with no lock held.
  //   ALREADY_EXISTS  a live stream of the same owner uses this agent_id with another generation:
  //                   two agents were given one name, or the agent lost its spool and its old
  //                   stream has not ended yet. Without an owner that is so for any live stream.
  absl::Status Claim(const std::string& agent_id, Claimant claimant) ABSL_LOCKS_EXCLUDED(mutex_);

  // `stream` speaks for nobody any more. Nothing happens if it did not.
  void Release(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  // Those that speak, by agent id.
  absl::flat_hash_map<std::string, Claimant> speakers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::string> agents_ ABSL_GUARDED_BY(mutex_);  // By stream.
};

// An agent is silent after this long without a message: it sends figures of its host every few
// seconds, whatever trainers do.
inline constexpr absl::Duration kAgentHeardWithin = absl::Minutes(1);

// An agent at one moment.
struct AgentState {
  std::string id;
  bool connected = false;
  int64_t last_heard_ns = 0;
  std::optional<double> clock_offset_seconds;  // How far its clock is ahead of the collector's.
  // The bound on the error of that; nullopt: the agent is of a version that does not measure it.
  std::optional<double> clock_uncertainty_seconds;
  uint64_t lost_rows = 0;  // Gaps and drops that it reported since then.
  int64_t last_loss_ns = 0;
};

// Thread-safe. Remembers kMaxAgents; past that it forgets those that were silent for longest.
class AgentLedger {
 public:
  static constexpr size_t kMaxAgents = 100'000;
  static constexpr size_t kMaxHostsOfAgent = 1024;

 private:
  struct Agent {
    const std::string id;
    std::atomic<int64_t> heard_ns = 0;
    std::atomic<uint32_t> streams = 0;

    explicit Agent(absl::string_view name) : id(name) {}

    struct Loss {
      int64_t time_ns = 0;
      uint64_t rows = 0;
    };
    mutable absl::Mutex mutex;
    std::optional<double> clock_offset_seconds ABSL_GUARDED_BY(mutex);
    std::optional<double> clock_uncertainty_seconds ABSL_GUARDED_BY(mutex);
    std::deque<Loss> losses ABSL_GUARDED_BY(mutex);  // The newest.
    std::set<std::string> hosts ABSL_GUARDED_BY(mutex);
  };

 public:
  // One stream of an agent, for as long as it lives: until then the agent counts as connected. For
  // one thread at a time; may outlive the ledger.
  class Stream {
   public:
    Stream() = default;
    Stream(Stream&&) noexcept = default;
    Stream& operator=(Stream&& other) noexcept;
    ~Stream() { Close(); }

    // Each does nothing for a stream of no agent.
    void Heard(int64_t now_ns);
    // A gap of so many rows, of at least one message.
    void Lost(uint64_t rows, int64_t now_ns);
    // How far the agent's clock is ahead, measured since the stream began.
    void ClockSeen(double offset_seconds, double uncertainty_seconds);

   private:
    friend class AgentLedger;
    void Close();
    std::shared_ptr<Agent> agent_;
  };

  Stream Open(absl::string_view agent_id, int64_t now_ns,
              std::optional<double> clock_offset_seconds) ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream sends rows of this host.
  void Serves(const Stream& stream, absl::string_view host) ABSL_LOCKS_EXCLUDED(mutex_);

  // An import sends rows of this host. It is no agent, and nobody waits for it. Past kMaxAgents
  // hosts, further ones are not remembered. A restart of the collector forgets all: then tasks of
  // an import count as living until windows forget them.
  void Imports(absl::string_view host) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsImported(const std::string& host) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The agent that speaks for a host, with its losses since `since_ns`; of several the one that was
  // heard last.
  std::optional<AgentState> Find(const std::string& host, int64_t since_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether that agent is connected and was heard within kAgentHeardWithin.
  bool Reports(const std::string& host, int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // May be held while that of an agent is taken.
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Agent>, std::less<>> agents_ ABSL_GUARDED_BY(mutex_);
  // By host.
  std::map<std::string, std::set<std::shared_ptr<Agent>>, std::less<>> hosts_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> imported_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::ingest

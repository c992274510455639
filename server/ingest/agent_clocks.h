// Compares the clocks of agents with the collector's. Each is remembered against the monotonic
// clock: so a jump of the collector's wall clock shows in all offsets at once.
//
// An agent says its time in Hello, and then about once a second in a ClockReport, which bounds the
// error (proto/tacho/v1/ingest.proto). One without reports, of an older version, is judged by Hello
// and by the times of its rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "server/ingest/clock_estimate.h"
#include "server/process/clock_watch.h"

namespace tacho::server::ingest {

// Thread-safe.
class AgentClocks {
 public:
  // Agents that have gone still count for this long. One whose rows are held back leaves, to come
  // again or to go to another collector: without this the few that stay would decide.
  static constexpr absl::Duration kRememberFor = absl::Hours(1);
  static constexpr size_t kMaxRemembered = 100'000;

  explicit AgentClocks(std::function<absl::Time()> now = absl::Now,
                       std::function<absl::Time()> monotonic = MonotonicNow);

 private:
  struct Entry {
    std::atomic<int64_t> offset_ns = 0;  // How far the agent's clock is ahead of the monotonic one.
    // Guarded by the mutex of the AgentClocks.
    int streams = 0;
    absl::Time left;  // Monotonic.
  };

 public:
  // The clock of a connected agent, for one of its streams. Must not outlive the AgentClocks.
  class Clock {
   public:
    ~Clock();

    // What a ClockReport says: the mark that it answers, how long the agent had that, and the time
    // by the agent's clock.
    struct Report {
      uint64_t mark = 0;
      absl::Duration held;
      absl::Time said;
    };
    struct Seen {
      ClockEstimate::Offset offset;        // Against the collector's wall clock of now.
      std::optional<absl::Duration> step;  // The agent's clock was set by this much.
    };
    // To be called as soon as the report has come. nullopt: it is impossible, and nothing is known
    // from it.
    std::optional<Seen> Reported(const Report& report);

    // A row came with this time. Only one that agrees with the collector's clock says anything
    // about the agent's: rows may be old, and programs write wrong times. Not in the first minutes,
    // in which an agent may send what has waited, and not after a report, which says more.
    void SawRow(int64_t time_ns);

   private:
    friend class AgentClocks;
    Clock(AgentClocks* clocks, std::string agent_id, std::shared_ptr<Entry> entry,
          absl::Time joined);
    AgentClocks* const clocks_;
    const std::string agent_id_;
    const std::shared_ptr<Entry> entry_;
    const absl::Time joined_;  // Monotonic.
    bool reports_ = false;
    ClockEstimate estimate_;  // Against the monotonic clock.
  };
  // `said` is what the agent's clock shows now; it replaces what was known.
  std::unique_ptr<Clock> Join(absl::string_view agent_id, absl::Time said)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For Welcome and Ack: the moment at which it is sent. Not 0.
  uint64_t Mark() const;

  process::ClockVotes Votes() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // `ours` is how far the collector's clock is ahead of the monotonic one.
  process::ClockVotes Count(absl::Duration ours, absl::Time uptime)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const std::string& agent_id, Entry* entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the next call count again, unless one agent more or less makes no difference.
  void ForgetCount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<absl::Time()> now_;
  const std::function<absl::Time()> monotonic_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Entry>> agents_ ABSL_GUARDED_BY(mutex_);
  // The last count, at which time and offset. Senders of wrong times make each of their messages
  // ask, and there may be many agents.
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration counted_ours_ ABSL_GUARDED_BY(mutex_);
  process::ClockVotes votes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::ingest

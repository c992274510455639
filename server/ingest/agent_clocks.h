// What the clocks of the connected agents say about the collector's. Each is remembered against the
// monotonic clock: so a jump of the collector's wall clock shows in all offsets at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "server/process/clock_watch.h"

namespace tacho::server::ingest {

// Thread-safe.
class AgentClocks {
 public:
  explicit AgentClocks(std::function<absl::Time()> now = absl::Now,
                       std::function<absl::Time()> monotonic = MonotonicNow);

  // The clock of one stream's agent, until it is destroyed. Must not outlive the AgentClocks.
  class Clock {
   public:
    ~Clock();
    // A row came with this time. Only one that agrees with the collector's clock says anything
    // about the agent's: rows may be old, and programs write wrong times. Not in the first minutes,
    // in which an agent may send what has waited.
    void SawRow(int64_t time_ns);

   private:
    friend class AgentClocks;
    Clock(AgentClocks* clocks, absl::Time said);
    AgentClocks* const clocks_;
    const absl::Time joined_;             // Monotonic.
    std::atomic<int64_t> offset_ns_ = 0;  // How far it is ahead of the monotonic clock.
  };
  // `said` is what the agent's clock shows now.
  std::unique_ptr<Clock> Join(absl::Time said) ABSL_LOCKS_EXCLUDED(mutex_);

  process::ClockVotes Votes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr absl::Duration kTrustRowsAfter = absl::Minutes(5);
  static constexpr absl::Duration kCountAgainAfter = absl::Seconds(1);

  // `ours` is how far the collector's clock is ahead of the monotonic one.
  process::ClockVotes Count(absl::Duration ours) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<absl::Time()> now_;
  const std::function<absl::Time()> monotonic_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<const Clock*> clocks_ ABSL_GUARDED_BY(mutex_);
  // The last count, at which time and offset: there may be many clocks, and senders of wrong times
  // make each of their messages ask. Forgotten when a clock comes or goes.
  mutable absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  mutable absl::Duration counted_ours_ ABSL_GUARDED_BY(mutex_);
  mutable process::ClockVotes votes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::ingest

// Whether the collector's wall clock can be believed. That clock decides which rows are too old or
// too new to be stored, and which days are dropped, so one wrong reading must not be enough.
//
//   jump      The wall clock moved by more than a minute against the monotonic clock. That doubt
//             ends when the clock is back where it was, when most agents have agreed with the new
//             time for a minute, or with a restart.
//   dispute   At least half of the agents have clocks that are more than a minute off. That doubt
//             ends when most agree. Half are enough, because an agent on the collector's host
//             always agrees with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"

namespace tacho::server::process {

// How other clocks compare with ours, at one moment.
struct ClockVotes {
  size_t agree = 0;
  size_t disagree = 0;
  absl::Duration ahead =
      absl::ZeroDuration();  // How far those that disagree are ahead of ours: their median.

  size_t all() const { return agree + disagree; }
};

// Thread-safe but for Start(), Stop() and Look().
class ClockWatch {
 public:
  // Less is a matter of time services, networks and busy machines.
  static constexpr absl::Duration kTolerance = absl::Minutes(1);
  // How long most agents must agree to confirm a jump: they may be about to follow it.
  static constexpr absl::Duration kConfirmAfter = absl::Minutes(1);

  struct Options {
    std::function<absl::Time()> now = absl::Now;
    std::function<absl::Time()> monotonic = MonotonicNow;
    std::function<ClockVotes()> votes = nullptr;  // Null: there are none.
    prometheus::Registry* registry = nullptr;     // Not owned.
    log::Log log = {};
    // Called with what Doubt() returns now, whenever that changes. May be null.
    std::function<void(const std::string& doubt)> on_doubt = nullptr;
  };
  explicit ClockWatch(Options options);

  // Looks every `round`, on a thread of its own, until Stop().
  void Start(absl::Duration round);
  void Stop() { thread_.Stop(); }

  // Compares the clocks, as every round does.
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);

  // As of the last look. One sentence that says what is wrong; empty if the clock is trusted.
  std::string Doubt() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsTrusted() const { return trusted_.load(std::memory_order_relaxed); }
  // The sentence about a dispute, by the votes of this moment; empty if there is none.
  std::string Dispute() const;
  // Either of the two: to be asked before something is given up because of a time.
  std::string DoubtNow() const;

 private:
  // The result of a look.
  struct Found {
    absl::Duration moved;  // A jump that is new; zero if there is none.
    bool confirmed = false;
    std::string doubt;
    std::string earlier_doubt;
  };
  Found Compare(const ClockVotes& votes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(const Found& found, const ClockVotes& votes);
  // Follows the wall clock; `offset` is how far it is ahead of the monotonic one. Returns the jump
  // that is new.
  absl::Duration Follow(absl::Duration offset, absl::Time uptime)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether most agents have agreed for long enough.
  bool IsConfirmed(const ClockVotes& votes, absl::Time uptime)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  prometheus::Counter& jumps_ahead_;
  prometheus::Counter& jumps_back_;
  prometheus::Gauge& doubted_;
  std::atomic<bool> trusted_{true};

  mutable absl::Mutex mutex_;
  absl::Duration believed_ ABSL_GUARDED_BY(mutex_);  // The offset that is trusted.
  absl::Duration counted_ ABSL_GUARDED_BY(mutex_);   // The offset that the last jump led to.
  absl::Duration jump_ ABSL_GUARDED_BY(mutex_);      // Zero: there is none to confirm.
  absl::Time looked_ ABSL_GUARDED_BY(mutex_);        // Monotonic.
  std::optional<absl::Time> agreed_since_ ABSL_GUARDED_BY(mutex_);  // Monotonic.
  std::string doubt_ ABSL_GUARDED_BY(mutex_);

  RepeatingThread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::process

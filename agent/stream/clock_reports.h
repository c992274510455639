// What an agent tells the collector about its clock, and what it gets to know of it.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// How far this host's clock is ahead of the collector's, for people and metrics: no stored time is
// changed. Thread-safe: the sender sets it, the agent's own source reads.
class ClockOffset {
 public:
  struct Estimate {
    absl::Duration ahead;        // Ours minus the collector's.
    absl::Duration uncertainty;  // The bound on the error.
  };

  // From Welcome: when ours said hello and got the answer, by our clock, and what the collector's
  // said in between.
  void Exchanged(absl::Time sent, absl::Time received, absl::Time collector)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (received < sent) return;  // Ours was set back meanwhile.
    const absl::Duration half = (received - sent) / 2;
    Set({.ahead = sent + half - collector, .uncertainty = half});
  }
  // From an Ack: what the collector measures.
  void Told(const v1::ClockEstimate& told) ABSL_LOCKS_EXCLUDED(mutex_) {
    Set({.ahead = absl::Nanoseconds(told.ahead_ns()),
         .uncertainty = absl::Nanoseconds(told.uncertainty_ns())});
  }

  std::optional<Estimate> estimate() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return estimate_;
  }

 private:
  void Set(const Estimate& estimate) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    estimate_ = estimate;
  }

  mutable absl::Mutex mutex_;
  std::optional<Estimate> estimate_ ABSL_GUARDED_BY(mutex_);
};

// When a stream reports its clock, and what it says. One thread; lives as long as one stream.
class ClockReports {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(1);
  // The encoded field has no more bytes.
  static constexpr uint64_t kMaxBytes = 40;

  // A Welcome or an Ack came; `mark` is 0 from a collector that takes no reports. `now` is
  // MonotonicNow()'s.
  void Marked(uint64_t mark, absl::Time now) {
    mark_ = mark;
    marked_ = now;
  }
  // Whether a report is to go with the next message. Each mark is used once.
  bool IsDue(absl::Time now) const { return mark_ != 0 && now - reported_ >= kEvery; }
  // The report of a moment by both clocks. Needs IsDue().
  v1::ClockReport Take(absl::Time now, absl::Time wall) {
    v1::ClockReport report;
    report.set_mark(mark_);
    report.set_held_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(now - marked_)));
    report.set_clock_unix_ns(absl::ToUnixNanos(wall));
    mark_ = 0;
    reported_ = now;
    return report;
  }

 private:
  uint64_t mark_ = 0;
  absl::Time marked_;
  absl::Time reported_ = absl::InfinitePast();
};

}  // namespace tacho::agent

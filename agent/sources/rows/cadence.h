// When a source samples: at the multiples of its interval since the Unix epoch, so that all
// machines of a fleet, and all sources of a machine, take their rows at the same moments.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "proto/base/check.h"

namespace tacho::agent {

// The first multiple of `interval` since the Unix epoch that is after `now`. The interval is whole
// nanoseconds, at least one.
inline absl::Time NextAligned(absl::Time now, absl::Duration interval) {
  const int64_t interval_ns = absl::ToInt64Nanoseconds(interval);
  TACHO_CHECK(interval_ns > 0);
  const int64_t now_ns = absl::ToUnixNanos(now);
  int64_t past = now_ns % interval_ns;
  if (past < 0) past += interval_ns;  // Before 1970: a clock that was never set.
  return absl::FromUnixNanos(now_ns - past + interval_ns);
}

// Which polls of a source sample. The first does; then one at or after each multiple. What a pause
// has missed is not made up, however long it was, and a clock that is set makes one odd interval:
// forwards, the next poll samples; backwards by more than an interval, too.
class Cadence {
 public:
  explicit Cadence(absl::Duration interval) : interval_(interval) {}

  // Whether to sample now; if so, the next multiple is due.
  bool TakeDue(absl::Time now) {
    if (now < due_ && due_ - now <= interval_) return false;
    due_ = NextAligned(now, interval_);
    return true;
  }

  // When to sample next.
  absl::Time due() const { return due_; }
  absl::Duration interval() const { return interval_; }

 private:
  absl::Duration interval_;
  absl::Time due_ = absl::InfinitePast();
};

}  // namespace tacho::agent

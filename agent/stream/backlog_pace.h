// How fast a backlog is sent behind what is recorded now.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace tacho::agent {

// One thread. Times are MonotonicNow()'s.
class BacklogPace {
 public:
  // What was not used of the rate is kept for so long, and no longer: sending at most once a
  // millisecond would cost more than the rows.
  static constexpr absl::Duration kBurst = absl::Milliseconds(100);

  // 0 rows a second is no bound.
  explicit BacklogPace(uint32_t rows_per_second = 0) : rows_per_second_(rows_per_second) {}

  bool Ready(absl::Time now) const { return next_ <= now; }
  // When it is worth looking again, if it is not ready.
  absl::Time next() const { return next_ + kBurst / 2; }
  // A message without rows counts as one.
  void Sent(uint64_t rows, absl::Time now) {
    if (rows_per_second_ == 0) return;
    next_ = std::max(next_, now - kBurst) +
            absl::Seconds(1) * static_cast<double>(std::max<uint64_t>(rows, 1)) / rows_per_second_;
  }

 private:
  uint32_t rows_per_second_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace tacho::agent

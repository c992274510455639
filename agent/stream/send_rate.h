// How fast the collector lets us send.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace tacho::agent {

// One thread. Times are MonotonicNow()'s.
class SendRate {
 public:
  // A collector cannot silence an agent for longer than this at once.
  static constexpr absl::Duration kMaxPause = absl::Minutes(10);

  // 0 rows a second lifts the limit.
  void Limit(uint32_t max_rows_per_second) { rows_per_second_ = max_rows_per_second; }
  void PauseFor(absl::Duration pause, absl::Time now) {
    next_ = std::max(next_, now + std::min(pause, absl::Duration(kMaxPause)));
  }
  void Sent(uint64_t rows, absl::Time now) {
    if (rows_per_second_ == 0) return;
    next_ = std::max(next_, now) + absl::Seconds(1) * static_cast<double>(rows) / rows_per_second_;
  }
  // When the next message may be sent; may be past.
  absl::Time next() const { return next_; }

 private:
  uint32_t rows_per_second_ = 0;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace tacho::agent

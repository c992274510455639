// How fast rows are sent: a backlog as the configuration allows, everything as the collector asks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace tacho::agent {

// How fast a backlog is sent behind what is recorded now.
//
// One thread. Times are MonotonicNow()'s.
class BacklogPace {
 public:
  // An unused part of the rate stays usable for this long. Without it, the sender would wake up for
  // every millisecond's rows, which costs more than the rows.
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

// How fast the collector lets us send.
//
// One thread. Times are MonotonicNow()'s.
class SendRate {
 public:
  // A collector cannot silence an agent for longer than this at once.
  static constexpr absl::Duration kMaxPause = absl::Minutes(10);

  // 0 rows a second lifts the limit. Earlier rows are paid for at the new rate.
  void Limit(uint32_t max_rows_per_second, absl::Time now) {
    if (max_rows_per_second == rows_per_second_) return;
    if (max_rows_per_second == 0) {
      paid_at_ = absl::InfinitePast();
    } else if (paid_at_ > now) {
      paid_at_ = Bounded(now + (paid_at_ - now) * rows_per_second_ / max_rows_per_second, now);
    }
    rows_per_second_ = max_rows_per_second;
  }
  void PauseFor(absl::Duration pause, absl::Time now) {
    paused_until_ = std::max(paused_until_, Bounded(now + pause, now));
  }
  void Sent(uint64_t rows, absl::Time now) {
    if (rows_per_second_ == 0) return;
    const absl::Duration price = absl::Seconds(1) * static_cast<double>(rows) / rows_per_second_;
    paid_at_ = Bounded(std::max(paid_at_, now) + price, now);
  }
  // When the next message may be sent; may be past.
  absl::Time next() const { return std::max(paid_at_, paused_until_); }

 private:
  static absl::Time Bounded(absl::Time until, absl::Time now) {
    return std::min(until, now + kMaxPause);
  }

  uint32_t rows_per_second_ = 0;
  absl::Time paid_at_ = absl::InfinitePast();  // By then as many rows were allowed as were sent.
  absl::Time paused_until_ = absl::InfinitePast();
};

}  // namespace tacho::agent

// How fast retention by age may drop days. Dropping cannot be undone, and the clock that decides
// what is old may be wrong: slowly enough, somebody notices before much is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace tacho::storage {

// At most so many days an hour of uptime, and none in the first hour's share: a process that is
// restarted again and again drops nothing. One thread at a time. Times are monotonic.
class RetentionPace {
 public:
  // 0 days an hour: no limit.
  RetentionPace(uint32_t days_per_hour, absl::Time started);

  // How many days may be dropped now; at most an hour's.
  size_t Allowed(absl::Time now) const;
  // The first day that stays if all before `wanted` are too old and `days`, ascending, of these
  // have data.
  int64_t FirstKept(const std::vector<int64_t>& days, int64_t wanted, absl::Time now) const;
  // So many days with data were dropped.
  void Dropped(size_t days, absl::Time now);

 private:
  const uint32_t days_per_hour_;
  absl::Time paid_until_;  // Uptime before this has been used up.
};

}  // namespace tacho::storage

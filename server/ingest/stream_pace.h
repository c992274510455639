// What one stream's agent is told about its pace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// For one thread at a time. Times are MonotonicNow()'s.
class StreamPace {
 public:
  // A limit that was told is lifted when it has not been needed for this long.
  static constexpr absl::Duration kLiftAfter = absl::Seconds(10);

  // The stream is not read from for `wait`. A Throttle to send, if it is worth one: an agent that
  // is told stops sending, which is cheaper than being stopped.
  std::optional<v1::Throttle> Slowed(absl::Duration wait, uint64_t max_rows_per_second,
                                     std::string reason, absl::Time now);
  // The Throttle that lifts the limit, once it is due.
  std::optional<v1::Throttle> Look(absl::Time now);
  // When to look next; InfiniteFuture() if nothing is to be lifted.
  absl::Time next_look() const { return lift_at_; }

 private:
  absl::Time told_ = absl::InfinitePast();
  absl::Time lift_at_ = absl::InfiniteFuture();
};

}  // namespace tacho::server::ingest

// When to try again: growing pauses, or longer ones that a server asks for.
#pragma once

#include <functional>
#include <optional>

#include "absl/time/time.h"

namespace tacho::client {

// Used from one thread. The bound of the pauses doubles from `min` to `max`. Each pause is random
// between half the bound and the bound, so that agents that lost a collector together do not return
// together.
class Backoff {
 public:
  // A collector cannot keep an agent away for longer than this.
  static constexpr absl::Duration kMaxRetryAfter = absl::Minutes(10);

  // `random` returns numbers in [0, 1). max < min counts as min.
  Backoff(absl::Duration min, absl::Duration max, std::function<double()> random);

  // The next pause. If the peer asked for a delay, that delay plus up to half as much again.
  absl::Duration Next(std::optional<absl::Duration> retry_after = {});
  // The connection works: start again with `min`.
  void Reset() { bound_ = min_; }

 private:
  const absl::Duration min_;
  const absl::Duration max_;
  const std::function<double()> random_;
  absl::Duration bound_;
};

}  // namespace tacho::client

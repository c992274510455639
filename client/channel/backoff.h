// How long to wait before connecting again.
#pragma once

#include <functional>
#include <optional>

#include "absl/time/time.h"

namespace tacho::client {

// One thread. The bound of the pauses doubles from `min` to `max`; each pause is drawn between half
// of the bound and the bound, so that agents that lost a collector together come back apart.
class Backoff {
 public:
  // A collector cannot keep an agent away for longer than this.
  static constexpr absl::Duration kMaxRetryAfter = absl::Minutes(10);

  // `random` gives numbers in [0, 1). max < min counts as min.
  Backoff(absl::Duration min, absl::Duration max, std::function<double()> random);

  // The next pause. If the peer said how long to wait, it is that and up to half as much again.
  absl::Duration Next(std::optional<absl::Duration> retry_after = {});
  // The connection works: begin with `min` again.
  void Reset() { bound_ = min_; }

 private:
  const absl::Duration min_;
  const absl::Duration max_;
  const std::function<double()> random_;
  absl::Duration bound_;
};

}  // namespace tacho::client

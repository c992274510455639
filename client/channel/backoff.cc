#include "client/channel/backoff.h"

#include <algorithm>
#include <utility>

namespace tacho::client {

Backoff::Backoff(absl::Duration min, absl::Duration max, std::function<double()> random)
    : min_(min), max_(std::max(min, max)), random_(std::move(random)), bound_(min) {}

absl::Duration Backoff::Next(std::optional<absl::Duration> retry_after) {
  const absl::Duration jitter = bound_ / 2 * random_();
  const absl::Duration pause = bound_ / 2 + jitter;
  bound_ = std::min(bound_ * 2, max_);
  if (!retry_after.has_value()) return pause;

  const absl::Duration asked =
      std::clamp(*retry_after, absl::ZeroDuration(), absl::Duration(kMaxRetryAfter));
  return std::max(pause, asked + asked / 2 * random_());
}

}  // namespace tacho::client

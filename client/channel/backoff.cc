#include "client/channel/backoff.h"

#include <algorithm>
#include <utility>

#include "interop/google_rpc.pb.h"

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

std::optional<absl::Duration> RetryDelay(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (!detail.Is<google::rpc::RetryInfo>() || !detail.UnpackTo(&info)) continue;
    return absl::Seconds(info.retry_delay().seconds()) +
           absl::Nanoseconds(info.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace tacho::client

#include "server/ingest/stream_pace.h"

#include <algorithm>
#include <utility>

namespace tacho::server::ingest {
namespace {

// Shorter waits the agent does not notice; nor does it gain from being told more often.
constexpr absl::Duration kLeastWait = absl::Milliseconds(100);
constexpr absl::Duration kTellEvery = absl::Seconds(1);

}  // namespace

std::optional<v1::Throttle> StreamPace::Slowed(absl::Duration wait, uint64_t max_rows_per_second,
                                               std::string reason, absl::Time now) {
  if (lift_at_ != absl::InfiniteFuture()) lift_at_ = now + kLiftAfter;
  if (wait < kLeastWait || now - told_ < kTellEvery) return std::nullopt;
  told_ = now;
  if (max_rows_per_second != 0) lift_at_ = now + kLiftAfter;
  v1::Throttle throttle;
  throttle.set_max_rows_per_second(
      static_cast<uint32_t>(std::min<uint64_t>(max_rows_per_second, UINT32_MAX)));
  throttle.set_pause_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  throttle.set_reason(std::move(reason));
  return throttle;
}

std::optional<v1::Throttle> StreamPace::Look(absl::Time now) {
  if (now < lift_at_) return std::nullopt;
  lift_at_ = absl::InfiniteFuture();
  v1::Throttle lifted;
  lifted.set_reason("within the quotas again");
  return lifted;
}

}  // namespace tacho::server::ingest

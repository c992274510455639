#include "server/ingest/clock_estimate.h"

namespace tacho::server::ingest {

std::optional<absl::Duration> ClockEstimate::Add(absl::Time now, Offset measured) {
  std::optional<absl::Duration> step;
  if (const auto before = Get(now); before.has_value()) {
    const absl::Duration moved = measured.ahead - before->ahead;
    if (absl::AbsDuration(moved) > measured.uncertainty + before->uncertainty) {
      step = moved;
      kept_.clear();
    }
  }
  kept_.push_back({.time = now, .offset = measured});
  while (kept_.size() > kKept || now - kept_.front().time > kMaxAge) kept_.pop_front();
  return step;
}

std::optional<ClockEstimate::Offset> ClockEstimate::Get(absl::Time now) const {
  std::optional<Offset> best;
  for (const Measurement& one : kept_) {
    const absl::Duration uncertainty = one.offset.uncertainty + (now - one.time) * kDrift;
    if (!best.has_value() || uncertainty <= best->uncertainty) {
      best = Offset{.ahead = one.offset.ahead, .uncertainty = uncertainty};
    }
  }
  return best;
}

}  // namespace tacho::server::ingest

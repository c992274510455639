#include "server/ingest/agent_clocks.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tacho::server::ingest {

AgentClocks::AgentClocks(std::function<absl::Time()> now, std::function<absl::Time()> monotonic)
    : now_(std::move(now)), monotonic_(std::move(monotonic)) {}

AgentClocks::Clock::Clock(AgentClocks* clocks, absl::Time said)
    : clocks_(clocks), joined_(clocks->monotonic_()) {
  offset_ns_ = absl::ToInt64Nanoseconds(said - joined_);
  absl::MutexLock lock(&clocks_->mutex_);
  clocks_->clocks_.insert(this);
  clocks_->counted_ = absl::InfinitePast();
}

AgentClocks::Clock::~Clock() {
  absl::MutexLock lock(&clocks_->mutex_);
  clocks_->clocks_.erase(this);
  clocks_->counted_ = absl::InfinitePast();
}

void AgentClocks::Clock::SawRow(int64_t time_ns) {
  const absl::Time time = absl::FromUnixNanos(time_ns);
  if (absl::AbsDuration(time - clocks_->now_()) > process::ClockWatch::kTolerance) return;
  const absl::Time uptime = clocks_->monotonic_();
  if (uptime - joined_ < kTrustRowsAfter) return;
  offset_ns_.store(absl::ToInt64Nanoseconds(time - uptime), std::memory_order_relaxed);
}

std::unique_ptr<AgentClocks::Clock> AgentClocks::Join(absl::Time said) {
  return std::unique_ptr<Clock>(new Clock(this, said));
}

process::ClockVotes AgentClocks::Votes() const {
  const absl::Time uptime = monotonic_();
  const absl::Duration ours = now_() - uptime;
  absl::MutexLock lock(&mutex_);
  if (uptime - counted_ >= kCountAgainAfter ||
      absl::AbsDuration(ours - counted_ours_) >= kCountAgainAfter) {
    votes_ = Count(ours);
    counted_ = uptime;
    counted_ours_ = ours;
  }
  return votes_;
}

process::ClockVotes AgentClocks::Count(absl::Duration ours) const {
  process::ClockVotes votes;
  std::vector<absl::Duration> off;
  for (const Clock* clock : clocks_) {
    const absl::Duration ahead =
        absl::Nanoseconds(clock->offset_ns_.load(std::memory_order_relaxed)) - ours;
    if (absl::AbsDuration(ahead) <= process::ClockWatch::kTolerance) {
      ++votes.agree;
    } else {
      off.push_back(ahead);
    }
  }
  votes.disagree = off.size();
  if (off.empty()) return votes;
  const auto middle = off.begin() + static_cast<ptrdiff_t>(off.size() / 2);
  std::nth_element(off.begin(), middle, off.end());
  votes.ahead = *middle;
  return votes;
}

}  // namespace tacho::server::ingest

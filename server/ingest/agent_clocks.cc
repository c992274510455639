#include "server/ingest/agent_clocks.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tacho::server::ingest {
namespace {

// How long rows may be those that waited.
constexpr absl::Duration kTrustRowsAfter = absl::Minutes(5);
constexpr absl::Duration kCountAgainAfter = absl::Seconds(1);
// With fewer agents each counts at once.
constexpr size_t kManyAgents = 100;
// An estimate that may be wrong by more has no vote: its error would use up ClockWatch::kTolerance.
constexpr absl::Duration kSureEnough = absl::Seconds(30);

}  // namespace

AgentClocks::AgentClocks(std::function<absl::Time()> now, std::function<absl::Time()> monotonic)
    : now_(std::move(now)), monotonic_(std::move(monotonic)) {}

AgentClocks::Clock::Clock(AgentClocks* clocks, std::string agent_id, std::shared_ptr<Entry> entry,
                          absl::Time joined)
    : clocks_(clocks), agent_id_(std::move(agent_id)), entry_(std::move(entry)), joined_(joined) {}

AgentClocks::Clock::~Clock() { clocks_->Leave(agent_id_, entry_.get()); }

std::optional<AgentClocks::Clock::Seen> AgentClocks::Clock::Reported(const Report& report) {
  const absl::Time uptime = clocks_->monotonic_();
  const absl::Time marked =
      absl::FromUnixNanos(static_cast<int64_t>(std::min<uint64_t>(report.mark, INT64_MAX)));
  if (report.held < absl::ZeroDuration() || marked < joined_ || marked > uptime) {
    return std::nullopt;
  }
  // Two monotonic clocks do not run at quite the same speed.
  const absl::Duration drift = report.held * ClockEstimate::kDrift;
  const absl::Duration on_the_way = uptime - marked - report.held;
  if (on_the_way < -drift) return std::nullopt;
  const absl::Duration half = std::max(on_the_way, absl::ZeroDuration()) / 2;
  const ClockEstimate::Offset measured = {.ahead = report.said - (uptime - half),
                                          .uncertainty = half + drift};
  reports_ = true;
  Seen seen;
  seen.step = estimate_.Add(uptime, measured);
  seen.offset = *estimate_.Get(uptime);
  if (seen.offset.uncertainty <= kSureEnough) {
    entry_->offset_ns.store(absl::ToInt64Nanoseconds(seen.offset.ahead), std::memory_order_relaxed);
  }
  seen.offset.ahead -= clocks_->now_() - uptime;
  return seen;
}

void AgentClocks::Clock::SawRow(int64_t time_ns) {
  if (reports_) return;
  const absl::Time time = absl::FromUnixNanos(time_ns);
  if (absl::AbsDuration(time - clocks_->now_()) > process::ClockWatch::kTolerance) return;
  const absl::Time uptime = clocks_->monotonic_();
  if (uptime - joined_ < kTrustRowsAfter) return;
  entry_->offset_ns.store(absl::ToInt64Nanoseconds(time - uptime), std::memory_order_relaxed);
}

std::unique_ptr<AgentClocks::Clock> AgentClocks::Join(absl::string_view agent_id, absl::Time said) {
  const absl::Time uptime = monotonic_();
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Entry>& entry = agents_[std::string(agent_id)];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  entry->offset_ns = absl::ToInt64Nanoseconds(said - uptime);
  ++entry->streams;
  ForgetCount();
  return std::unique_ptr<Clock>(new Clock(this, std::string(agent_id), entry, uptime));
}

void AgentClocks::Leave(const std::string& agent_id, Entry* entry) {
  const absl::Time uptime = monotonic_();
  absl::MutexLock lock(&mutex_);
  --entry->streams;
  entry->left = uptime;
  if (entry->streams > 0 || agents_.size() <= kMaxRemembered) return;
  agents_.erase(agent_id);
  ForgetCount();
}

void AgentClocks::ForgetCount() {
  if (votes_.all() < kManyAgents) counted_ = absl::InfinitePast();
}

uint64_t AgentClocks::Mark() const {
  return static_cast<uint64_t>(std::max<int64_t>(1, absl::ToUnixNanos(monotonic_())));
}

process::ClockVotes AgentClocks::Votes() {
  const absl::Time uptime = monotonic_();
  const absl::Duration ours = now_() - uptime;
  absl::MutexLock lock(&mutex_);
  if (uptime - counted_ >= kCountAgainAfter ||
      absl::AbsDuration(ours - counted_ours_) >= kCountAgainAfter) {
    votes_ = Count(ours, uptime);
    counted_ = uptime;
    counted_ours_ = ours;
  }
  return votes_;
}

process::ClockVotes AgentClocks::Count(absl::Duration ours, absl::Time uptime) {
  absl::erase_if(agents_, [&](const auto& agent) {
    return agent.second->streams == 0 && uptime - agent.second->left >= kRememberFor;
  });
  process::ClockVotes votes;
  std::vector<absl::Duration> off;
  for (const auto& [id, entry] : agents_) {
    const absl::Duration ahead =
        absl::Nanoseconds(entry->offset_ns.load(std::memory_order_relaxed)) - ours;
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

// The offset between wall clock and monotonic clock is constant but for what a time service steps,
// and for suspends, which the monotonic clock does not count. Slewing changes both clocks alike.
#include "server/process/clock_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::process {
namespace {

std::string Amount(absl::Duration offset) {
  return absl::FormatDuration(absl::Trunc(absl::AbsDuration(offset), absl::Seconds(1)));
}

std::string DescribeDispute(const ClockVotes& votes) {
  if (votes.disagree == 0 || votes.disagree < votes.agree) return "";
  return absl::StrCat("the clocks of ", votes.disagree, " of ", votes.all(), " agents are ",
                      Amount(votes.ahead),
                      votes.ahead > absl::ZeroDuration() ? " ahead of" : " behind",
                      " the collector's: set the clock that is wrong, most likely the collector's");
}

std::string DescribeJump(absl::Duration jump) {
  return absl::StrCat("the collector's clock jumped ",
                      jump > absl::ZeroDuration() ? "ahead" : "back", " by ", Amount(jump),
                      ", and most agents have not confirmed the new time: set the clock, or if it "
                      "is right restart the collector");
}

}  // namespace

ClockWatch::ClockWatch(Options options)
    : options_(std::move(options)),
      jumps_ahead_(metrics::NewCounter(options_.registry, "tacho_clock_jumps_total",
                                       {{"direction", "ahead"}})),
      jumps_back_(metrics::NewCounter(options_.registry, "tacho_clock_jumps_total",
                                      {{"direction", "back"}})),
      doubted_(metrics::NewGauge(options_.registry, "tacho_clock_doubted")),
      looked_(options_.monotonic()) {
  absl::MutexLock lock(&mutex_);
  believed_ = counted_ = options_.now() - looked_;
}

void ClockWatch::Start(absl::Duration round) {
  thread_.Start("clock watch", RepeatingThread::Priority::kUsual, round, [this] { Look(); });
}

void ClockWatch::Look() {
  const ClockVotes votes = options_.votes == nullptr ? ClockVotes() : options_.votes();
  Tell(Compare(votes), votes);
}

ClockWatch::Found ClockWatch::Compare(const ClockVotes& votes) {
  Found found;
  absl::MutexLock lock(&mutex_);
  const absl::Time uptime = options_.monotonic();
  found.moved = Follow(options_.now() - uptime, uptime);
  if (jump_ != absl::ZeroDuration() && IsConfirmed(votes, uptime)) {
    found.confirmed = true;
    believed_ += jump_;
    jump_ = absl::ZeroDuration();
  }
  const std::string dispute = DescribeDispute(votes);
  if (jump_ != absl::ZeroDuration()) found.doubt = DescribeJump(jump_);
  if (!found.doubt.empty() && !dispute.empty()) found.doubt += "; ";
  found.doubt += dispute;
  found.earlier_doubt = std::exchange(doubt_, found.doubt);
  trusted_ = found.doubt.empty();
  return found;
}

void ClockWatch::Tell(const Found& found, const ClockVotes& votes) {
  if (found.moved != absl::ZeroDuration()) {
    const bool ahead = found.moved > absl::ZeroDuration();
    (ahead ? jumps_ahead_ : jumps_back_).Increment();
    options_.log.Warn(
        ahead ? "clock: the wall clock jumped ahead" : "clock: the wall clock jumped back",
        {{"by", Amount(found.moved)}});
  }
  if (found.confirmed) {
    options_.log.Info("clock: most agents agree with the new time",
                      {{"agree", votes.agree}, {"agents", votes.all()}});
  }
  if (found.doubt == found.earlier_doubt) return;
  if (found.doubt.empty()) options_.log.Info("clock: trusted again");
  if (found.earlier_doubt.empty()) {
    options_.log.Error("clock: not trusted", {{"reason", found.doubt}});
  }
  doubted_.Set(found.doubt.empty() ? 0 : 1);
  if (options_.on_doubt) options_.on_doubt(found.doubt);
}

absl::Duration ClockWatch::Follow(absl::Duration offset, absl::Time uptime) {
  // Small steps are followed, but only slowly: many of them are a jump too.
  const absl::Duration most = (uptime - looked_) / 10;
  looked_ = uptime;
  absl::Duration moved = offset - counted_;
  if (absl::AbsDuration(moved) > kTolerance) {
    counted_ = offset;
    agreed_since_.reset();
  } else {
    moved = absl::ZeroDuration();
  }
  jump_ = offset - believed_;
  if (absl::AbsDuration(jump_) > kTolerance) return moved;
  believed_ += std::clamp(jump_, -most, most);
  counted_ = believed_;
  jump_ = absl::ZeroDuration();
  return moved;
}

bool ClockWatch::IsConfirmed(const ClockVotes& votes, absl::Time uptime) {
  if (votes.agree * 2 <= votes.all()) {
    agreed_since_.reset();
    return false;
  }
  if (!agreed_since_.has_value()) agreed_since_ = uptime;
  return uptime - *agreed_since_ >= kConfirmAfter;
}

std::string ClockWatch::Doubt() const {
  absl::MutexLock lock(&mutex_);
  return doubt_;
}

std::string ClockWatch::Dispute() const {
  return options_.votes == nullptr ? "" : DescribeDispute(options_.votes());
}

std::string ClockWatch::DoubtNow() const {
  std::string dispute = Dispute();
  return dispute.empty() ? Doubt() : dispute;
}

}  // namespace tacho::server::process

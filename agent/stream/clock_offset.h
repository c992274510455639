// How far the collector's clock is ahead of ours. For people and metrics: no stored time is
// changed.
#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"

namespace tacho::agent {

// One thread.
class ClockOffset {
 public:
  struct Estimate {
    absl::Duration offset;       // Collector's minus ours.
    absl::Duration uncertainty;  // Half of the round trip.
  };

  // From Welcome: when ours said hello and got the answer, by our clock, and what the collector's
  // said in between.
  void Exchanged(absl::Time sent, absl::Time received, absl::Time collector) {
    if (received < sent) return;  // Ours was set back meanwhile.
    estimate_ = Estimate{.offset = collector - (sent + (received - sent) / 2),
                         .uncertainty = (received - sent) / 2};
  }
  // From Ack: it was under way for some time, so the collector's clock is at least this far ahead.
  void Heard(absl::Time received, absl::Time collector) {
    if (estimate_) estimate_->offset = std::max(estimate_->offset, collector - received);
  }
  std::optional<Estimate> estimate() const { return estimate_; }

 private:
  std::optional<Estimate> estimate_;
};

}  // namespace tacho::agent

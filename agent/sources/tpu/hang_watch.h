// Tells when a job looks hung, by what its chips do.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace tacho::agent {

// What one look has seen of all chips together.
struct TpuActivity {
  bool held = false;               // Some process holds chips, and its libtpu answers.
  std::optional<double> busiest;   // Highest duty cycle, 0..1.
  std::optional<double> executed;  // Programs that were ever run.
  std::optional<double> queued;    // Programs that wait.
};

// Progress is that programs were run. Where that is not told, it is that a chip was busy or the
// queues changed; a chip that spins in a collective is busy too, so the first is preferred.
class HangWatch {
 public:
  // Zero: never.
  explicit HangWatch(absl::Duration after) : after_(after) {}

  // Whether chips are held and nothing has progressed for `after`: once, until something does.
  // `now` is a steady clock's.
  bool Look(absl::Time now, const TpuActivity& activity) {
    const bool same = activity.held && last_.held && !Progressed(activity);
    last_ = activity;
    if (!same) {
      quiet_since_ = now;
      told_ = false;
    }
    if (after_ == absl::ZeroDuration() || told_ || !activity.held || now - quiet_since_ < after_) {
      return false;
    }
    told_ = true;
    return true;
  }

 private:
  bool Progressed(const TpuActivity& now) const {
    if (now.executed.has_value() && last_.executed.has_value()) {
      return *now.executed != *last_.executed;
    }
    return now.busiest.value_or(0) > 0 || now.queued != last_.queued;
  }

  const absl::Duration after_;
  TpuActivity last_;
  absl::Time quiet_since_ = absl::InfinitePast();
  bool told_ = false;
};

}  // namespace tacho::agent

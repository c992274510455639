// When a job looks hung by what its chips do, and the errors that libtpu's gauges detect.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/tpu/tpu_points.h"

namespace tacho::agent {

// The activity of all chips together in one look.
struct TpuActivity {
  bool held = false;               // Some process holds chips, and its libtpu answers.
  std::optional<double> busiest;   // Highest duty cycle, 0..1.
  std::optional<double> executed;  // Programs that were ever run.
  std::optional<double> queued;    // Programs that wait.
};

// Notices when a job looks hung. Progress means that programs ran. Where libtpu does not report
// that, it means that a chip was busy or the queues changed; a chip that spins in a collective is
// busy too, so the first is preferred.
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

// libtpu's gauges of detected errors, as events: once for each change.
//
// A gauge stays at 1 for as long as the error lasts, on every port of a worker: that is one event
// when it rises and one, `..._cleared`, when it falls or is gone. One thread.
class TpuErrors {
 public:
  // At once; a runtime that makes up a label for each error must not fill the memory.
  static constexpr size_t kMaxErrors = 64;

  // The result of one look at all ports, by libtpu's names of the gauges; a gauge that no port
  // reports stays as it was, unless `nobody_up`. Returns whether an error is new.
  bool Tell(absl::Time now, const std::map<std::string, std::vector<TpuPoint>>& gauges,
            bool nobody_up, ChipEvents* events);
  // Those of one gauge that last.
  size_t Count(const std::string& gauge) const;

 private:
  using Error = std::pair<std::string, std::map<std::string, std::string>>;  // Gauge, labels.

  std::set<Error> lasting_;
};

}  // namespace tacho::agent

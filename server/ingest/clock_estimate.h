// How far another clock is ahead, from exchanges with it that each give a bound on their error.
//
// Definition. A measurement says that the offset is within `ahead` ± `uncertainty`; that was true
// when it was made. It ages: clocks drift apart, so its uncertainty grows by kDrift. The estimate
// is the measurement whose aged uncertainty is smallest, of the newest kKept that are at most
// kMaxAge old. A measurement that contradicts the estimate, because the two ranges have no point in
// common, shows that the clock was set: all before it are dropped.
//
// So a step that is larger than the two uncertainties together shows with the first measurement
// after it. A smaller one shows when the measurements from before it are kMaxAge old.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace tacho::server::ingest {

// Not thread-safe. Times are those of a clock that nobody sets.
class ClockEstimate {
 public:
  static constexpr size_t kKept = 8;
  static constexpr absl::Duration kMaxAge = absl::Minutes(1);
  // What a time service may slew a clock by, and more than what a quartz is off.
  static constexpr double kDrift = 500e-6;

  struct Offset {
    absl::Duration ahead;
    absl::Duration uncertainty;
  };

  // Takes a measurement of `now`, which is not before the one before it. Returns by how much the
  // clock was set since the estimate, if this measurement shows that.
  std::optional<absl::Duration> Add(absl::Time now, Offset measured);
  // The estimate; nullopt: nothing was measured.
  std::optional<Offset> Get(absl::Time now) const;

 private:
  struct Measurement {
    absl::Time time;
    Offset offset;
  };
  std::deque<Measurement> kept_;  // Ascending by time.
};

}  // namespace tacho::server::ingest

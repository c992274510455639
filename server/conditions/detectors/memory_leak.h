// MemoryLeak: the memory of a host or chip grows so that it will run out.
//
// Definition. Over a span of time (all that the window shows since the attempt began and warmed up,
// or its newest half, or its newest quarter) the used memory is reduced to its floor: the lowest
// value in each of up to 24 equal parts of the span. Peaks above the floor, as of checkpoints,
// evaluations and caches that are emptied again, do not count. It leaks if in one of the spans
//   - the floor rises steadily: Kendall's tau >= min_tau, and z >= 4 (Mann 1945, Kendall 1948);
//   - it still does: the slope of the newest third is at least half that of the span, so that what
//     fills up and then stays, as in warming up, does not count;
//   - it rose by at least min_growth of the total;
//   - at that slope (Theil 1950, Sen 1968) the rest is used up within the horizon.
// Time left = (total - floor now) / slope, with the 95 % interval of the slope as its uncertainty.
// The combination is our own.
//
// Units: bytes, seconds. Limits: growth that ends short of the limit, but later than it is seen,
// looks like a leak; a floor is not seen while the span is shorter than a period of what is
// emptied again. Reasons: HostMemory, DeviceMemory. Score of a culprit: seconds left, the fewest
// first. Severity: critical below critical_left, else warning.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct MemoryLeakSettings {
  absl::Duration horizon = absl::Hours(24);
  absl::Duration critical_left = absl::Hours(1);
  absl::Duration warmup = absl::Minutes(5);     // After the attempt began.
  absl::Duration min_span = absl::Minutes(10);  // Shorter ones are not judged.
  double min_growth = 0.01;                     // Of the total.
  double min_tau = 0.7;
};

Finding DetectMemoryLeak(const JobWindow& window, const MemoryLeakSettings& settings);

}  // namespace tacho::server::conditions

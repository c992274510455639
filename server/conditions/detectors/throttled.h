// Throttled: chips run below their clock because they are too hot or draw too much power.
//
// Definition. A value of a chip's clock is low if it is below min_clock of the chip's highest clock
// (what it could run at; else the highest that the window shows), and has a cause if at that time
// one of these says why:
//   - throttle reasons (bits of NVML's clocksEventReasons): HW thermal 0x40, SW thermal 0x20, HW
//     power brake 0x80, HW slowdown 0x8, SW power cap 0x4. Idle, application clocks, sync boost and
//     display clocks are no causes;
//   - libtpu's throttle score, 0..10, above 0;
//   - temperature of at least hot_celsius; power of at least capped of its limit.
// Only values count at which the chip is at work: duty cycle at least min_busy, where it is known.
// A chip is throttled if at least half of its values of the newest `span`, and the newest, are low
// with a cause. Without a clock, HW thermal, HW power brake, HW slowdown or a score of at least 3
// is enough. A low clock without a cause is not this condition. Bits: NVIDIA, nvml.h. The levels
// are our own.
//
// What it costs: median step time of the newest span less that of the steps before the chip became
// slow, where both are recorded.
//
// Units: hertz, degrees Celsius, watts, seconds. Reasons: Thermal, PowerBrake, HardwareSlowdown,
// PowerCap, ThrottleScore, Hot, NearPowerLimit. Score of a culprit: clock through highest clock,
// the lowest first. Severity: critical if steps take a fifth longer, or the clock is below half,
// else warning.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct ThrottledSettings {
  double min_clock = 0.9;
  double min_busy = 0.2;
  double hot_celsius = 85;
  double capped = 0.98;
  absl::Duration span = absl::Minutes(2);
};

Finding DetectThrottled(const JobWindow& window, const ThrottledSettings& settings);

}  // namespace tacho::server::conditions

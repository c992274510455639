// ClockSkewed: the clock of a host is off, so that times of its rows are.
//
// Definition. With o_i how far the clock of host i is ahead of the collector's, as its agent
// estimated it from exchanges with the collector: |o_i| > max_offset.
// If at least half of 3 hosts or more are off by the same, within max_offset, it is the collector's
// clock that differs (reason CollectorClock, no culprits). Otherwise the reason is HostClock, with
// the hosts as culprits, the furthest first; score: |o_i| in seconds.
//
// Needs agents that estimate their offset; an estimate is off by half a round trip at most. Rows
// are kept with the times that they came with; detectors here correct for a known offset.
//
// Source: the exchange is NTP's (RFC 5905, section 8); the bound is ours: below it nothing that is
// shown by seconds changes.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct ClockSkewedSettings {
  absl::Duration max_offset = absl::Seconds(1);
};

Finding DetectClockSkewed(const JobWindow& window, const ClockSkewedSettings& settings);

}  // namespace tacho::server::conditions

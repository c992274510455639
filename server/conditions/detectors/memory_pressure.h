// MemoryPressure: the memory of a host or chip is nearly used up.
//
// Definition. Over the newest `span` every value of a host has less than host_free of its memory
// available (the kernel's MemAvailable), or every value of a chip more than device_used of its
// memory used. At least two values, the newest no older than the span. The levels are our own; the
// host's is where Linux begins to reclaim what is in use, before its out-of-memory killer acts.
//
// Units: shares, 0..1. Limits: frameworks that take all device memory in advance (XLA by default
// takes 75 % and more, some setups all of it) need device_used above what they take, or 1, with
// which devices are never under pressure. Reasons: HostMemory, DeviceMemory. Score of a culprit:
// the share that is free, the least first. Severity: critical if the share that is free is below
// half of its limit.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct MemoryPressureSettings {
  double host_free = 0.05;
  double device_used = 0.98;
  absl::Duration span = absl::Minutes(1);
};

Finding DetectMemoryPressure(const JobWindow& window, const MemoryPressureSettings& settings);

}  // namespace tacho::server::conditions

// Figures that change slowly or cost more to ask: settings, the clock, NUMA nodes, thermal
// throttling.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"

struct timex;

namespace tacho::agent {

// "always [madvise] never": a series for each setting, 1 for the one in force.
bool ParseTransparentHugePages(absl::string_view text, Sample* out);

// The answer of adjtimex(2): `result` is what it returned, negative if it failed.
void AddClockState(const timex& answer, int result, Sample* out);

// "Node 0 MemTotal: 123 kB" and so on, of /sys/devices/system/node/node*/meminfo.
bool ParseNodeMeminfo(absl::string_view text, absl::string_view node, Sample* out);
// "numa_miss 123" and so on, of …/numastat; in pages there, in bytes here.
bool ParseNumastat(absl::string_view text, absl::string_view node, double page_bytes, Sample* out);

// All of it, from below `sys`. Asks the kernel about its clock. Figures that a machine does not
// have (containers, other processors) are left out.
//   UNAVAILABLE  nothing of it could be had.
absl::Status TakeHostSettings(const std::string& sys, double page_bytes, Sample* out);

}  // namespace tacho::agent

// What the kernel says of this process, under the names that every Prometheus client library uses.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server::http {

// Reads /proc; `proc` is "/proc" but in tests. What cannot be read is left out.
std::vector<prometheus::MetricFamily> ProcessFamilies(const std::string& proc = "/proc");

// The fields of /proc/<pid>/stat that are shown.
struct ProcessStat {
  bool ok = false;
  uint64_t cpu_ticks = 0;    // User and system.
  uint64_t start_ticks = 0;  // Since boot.
  uint64_t resident_pages = 0;
};
// The command's name, in parentheses, may hold spaces and parentheses of its own.
ProcessStat ParseProcessStat(absl::string_view stat);

}  // namespace tacho::server::http

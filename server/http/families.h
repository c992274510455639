// Figures that the page itself reads when a scrape asks: those of the store, the limits, the disk
// and the process, as metric families.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/readiness.h"
#include "storage/store.h"

namespace tacho::server::http {

std::vector<prometheus::MetricFamily> StoreFamilies(const storage::StoreStats& stats);

// tacho_limit, tacho_limit_used and tacho_limit_headroom_ratio, by limit. A limit of the collector
// as a whole shows its use; a limit on jobs, metrics or labels shows the use that is nearest to it,
// among the largest of each job in memory.
std::vector<prometheus::MetricFamily> LimitFamilies(const storage::Store& store);

// Whether the collector takes work, and how much room its disk has: what alerts ask for while the
// scrape still answers. `readiness` may be null, `storage_path` empty: what is not known is left
// out.
std::vector<prometheus::MetricFamily> HealthFamilies(const Readiness* readiness,
                                                     const std::string& storage_path);

// tacho_page_info, for links to the page at `url`; nothing if it is empty.
std::vector<prometheus::MetricFamily> PageFamilies(const std::string& url);

// The kernel's figures of this process, under the names that every Prometheus client library uses.
// Reads /proc; `proc` is "/proc" but in tests. Figures that cannot be read are left out.
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

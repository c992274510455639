// What is used of the limits on series, for /metrics.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "storage/store.h"

namespace tacho::server::http {

// tacho_limit, tacho_limit_used and tacho_limit_headroom_ratio, by limit: those of the collector as
// a whole, and of the limits on jobs, metrics and labels the use that is nearest to its limit,
// among the largest of each job in memory.
std::vector<prometheus::MetricFamily> LimitFamilies(const storage::Store& store);

}  // namespace tacho::server::http

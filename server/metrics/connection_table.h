// The families of quotas and connections.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kConnectionMetrics[] = {
    {"tacho_quota_limit", "gauge", "as the key", "quota",
     "Quotas in force, by their key without `quotas.`; 0 is no limit, of rates"},
    {"tacho_quota_used", "gauge", "as the key", "quota",
     "How much of it is in use: `pending_bytes`, `memory_bytes`, `connections`"},
    {"tacho_connections_refused_total", "counter", "connections", "reason",
     "Closed as soon as they were made: `total`, `address`, `memory`, `penalty`"},
    {"tacho_connections_closed_total", "counter", "connections", "reason",
     "Shut down for what they did: `silent` (no call), `unfinished` (half a message), `flood` "
     "(bytes that are no messages), `calls` (too many begun)"},
};

}  // namespace tacho::server::metrics

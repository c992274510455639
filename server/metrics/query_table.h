// The families of queries.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kQueryMetrics[] = {
    {"tacho_query_requests_total", "counter", "queries", "method, code",
     "Queries that ended, by gRPC status code; TensorBoard's as `tensorboard.…`"},
    {"tacho_query_duration_seconds", "histogram", "s", "method",
     "Time that they took, waiting for their client included"},
    {"tacho_query_active", "gauge", "queries", "",
     "At work now; `query.max_concurrent` is the most"},
    {"tacho_query_samples_returned_total", "counter", "samples", "",
     "Samples and buckets that `Range` and `Export` have returned"},
    {"tacho_query_watches", "gauge", "watches", "",
     "Open now; `query.max_watches` is the most. A watch counts in "
     "`tacho_query_requests_total` when it ends, and in no duration"},
    {"tacho_query_watched_samples_total", "counter", "samples", "",
     "Samples that watches were sent as they became durable, each as often as it was sent"},
};

}  // namespace tacho::server::metrics

// The families of ingest and of limits.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kIngestMetrics[] = {
    {"tacho_ingest_streams", "gauge", "streams", "", "Streams of agents that are open"},
    {"tacho_ingest_batches_total", "counter", "batches", "", "Passed admission, repeats included"},
    {"tacho_ingest_lost_messages_total", "counter", "messages", "",
     "Agents reported them as lost in their spools (full or torn); repeats of a report included"},
    {"tacho_ingest_lost_rows_total", "counter", "rows", "",
     "Rows in them, as far as the agents knew"},
    {"tacho_ingest_rows_total", "counter", "rows", "", "Passed admission, repeats included"},
    {"tacho_ingest_samples_accepted_total", "counter", "samples", "",
     "Passed admission, repeats and stale markers included"},
    {"tacho_ingest_samples_rejected_total", "counter", "samples", "reason",
     "Refused while their message was accepted"},
    {"tacho_ingest_samples_folded_total", "counter", "samples", "",
     "Added up in overflow series, stale markers included"},
    {"tacho_limit_series_total", "counter", "series", "limit, action",
     "Met a limit when a layout defined them, each as often as a layout did. `limit` is the key "
     "under `limits`, or `names` for texts that are not allowed; an event or attributes of a job "
     "too many count as one; `action` is `reject`, `fold` or `observe`"},
    {"tacho_limit", "gauge", "1", "limit",
     "The limit. Of `series_per_job`, `series_per_metric` and `values_per_label` that of the "
     "job, metric or label which is nearest to its own, among the eight largest of each job in "
     "use"},
    {"tacho_limit_used", "gauge", "1", "limit", "What of it is used, there"},
    {"tacho_limit_headroom_ratio", "gauge", "1", "limit",
     "What is left of it, there: 1 all, 0 nothing; below 0 once it was lowered under what there "
     "is"},
    {"tacho_ingest_messages_refused_total", "counter", "messages", "reason", "Refused whole"},
    {"tacho_ingest_acks_total", "counter", "messages", "", "Acknowledgements sent"},
    {"tacho_ingest_throttled_total", "counter", "1", "how", "Times that a stream was slowed down"},
    {"tacho_ingest_throttled_seconds_total", "counter", "s", "how",
     "Time in which streams were not read from; of a pause when it is over"},
    {"tacho_ingest_stream_ends_total", "counter", "streams", "code",
     "Streams that ended, by gRPC status code"},
    {"tacho_ingest_clock_offset_seconds", "histogram", "s", "",
     "How far agents' clocks are ahead when they connect, less the time their first message "
     "took"},
};

}  // namespace tacho::server::metrics

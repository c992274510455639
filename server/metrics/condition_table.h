// The families of conditions.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kConditionMetrics[] = {
    {"tacho_job_condition", "gauge", "1", "job, condition, severity",
     "1 while the condition is true, 0 while it is false. Absent while there is nothing to judge "
     "it "
     "by",
     "Once there is something to judge a job by"},
    {"tacho_job_condition_info", "gauge", "1",
     "job, condition, severity, reason, host, task, chip, step, metric",
     "Always 1; the labels tell of the first culprit of a condition that is true, and are empty "
     "where they do not apply",
     "While a condition is true"},
    {"tacho_job_condition_since_timestamp_seconds", "gauge", "s", "job, condition",
     "When it began as far as the data tells, since the Unix epoch", "While a condition is true"},
    {"tacho_job_condition_culprits", "gauge", "1", "job, condition",
     "How many tasks, hosts, chips or metrics it is about, at most 16",
     "While a condition is true"},
    {"tacho_conditions_lines_left_out", "gauge", "lines", "",
     "Lines of conditions that `metrics.max_series` left out of this scrape"},
    {"tacho_conditions_jobs", "gauge", "jobs", "", "Jobs that are looked at"},
    {"tacho_job_conditions_evaluated_total", "counter", "1", "", "Times that a job was judged"},
    {"tacho_conditions_evaluation_seconds", "histogram", "s", "",
     "Time that it took to judge one job by all conditions"},
    {"tacho_conditions_window_series", "gauge", "series", "",
     "Series whose recent values are held to judge by"},
    {"tacho_conditions_window_bytes", "gauge", "bytes", "",
     "Memory of these values, at most `conditions.total_bytes`"},
    {"tacho_conditions_series_left_out_total", "counter", "series", "",
     "Series for which these bytes had no room"},
    {"tacho_conditions_jobs_left_out_total", "counter", "1", "",
     "Batches and events of jobs beyond `conditions.max_jobs`"},
    {"tacho_conditions_fallen_behind_total", "counter", "1", "",
     "Times that more was committed than waits to be judged; it is read from the store then"},
    {"tacho_conditions_events_total", "counter", "events", "outcome",
     "Events of conditions that were `stored`, or `refused` by the disk and tried again"},
};

}  // namespace tacho::server::metrics

// The families about jobs; their metrics have names of their own, see exposition_name.h.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr MetricInfo kJobMetrics[] = {
    {"tacho_job_tasks", "gauge", "tasks", "job",
     "Tasks that report now. 0 for an hour after a job went silent, then the job leaves the page"},
    {"tacho_job_hosts", "gauge", "hosts", "job", "Hosts that report now"},
    {"tacho_job_last_step", "gauge", "steps", "job, stat",
     "Highest (`max`) and lowest (`min`) newest step of the tasks that report now; absent "
     "without steps"},
    {"tacho_job_attempt", "gauge", "1", "job", "Newest attempt, from 0"},
    {"tacho_job_last_seen_timestamp_seconds", "gauge", "s", "job",
     "Time of the newest row, since the Unix epoch"},
    {"tacho_job_series", "gauge", "series", "job",
     "Series that report now, each once, whether they are in an aggregate or not"},
    {"tacho_job_silent_tasks", "gauge", "tasks", "job",
     "Tasks of the newest attempt that have reported within the hour, and not within "
     "`metrics.staleness`; of a job that has ended, all"},
    {"tacho_job_tasks_left_total", "counter", "tasks", "job",
     "Times that a task left the aggregates because it was silent, or ended"},
    {"tacho_job_series_left_total", "counter", "series", "job",
     "Times that a series left the aggregates because it was silent, or has no value any more"},
    {"tacho_aggregate_groups", "gauge", "groups", "rule",
     "Groups that each rule makes now: `rules[0]` is the first of `metrics.rules`"},
    {"tacho_aggregate_series_without_group", "gauge", "series", "rule",
     "Series that are in no group of the rule, because `max_groups` are there"},
    {"tacho_aggregate_series_in_conflict", "gauge", "series", "rule",
     "Series that are not shown by the rule, because their lines are another rule's, or their "
     "family has another type"},
    {"tacho_aggregate_series_left_out", "gauge", "lines", "",
     "Lines that `metrics.max_series` left out of this scrape"},
    {"tacho_job_aggregates_left_out", "gauge", "lines", "job", "Lines of the job among them",
     "Only of jobs that have some"},
};

}  // namespace tacho::server::metrics

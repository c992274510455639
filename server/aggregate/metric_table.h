// The families about jobs; their metrics have names of their own, see exposition_name.h.
#pragma once

#include "server/metric_info.h"

namespace tacho::server {

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
    {"tacho_aggregate_series_left_out", "gauge", "lines", "",
     "Lines that `metrics.max_series` left out of this scrape"},
};

}  // namespace tacho::server

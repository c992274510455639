// The families of where the wall time of jobs went.
#pragma once

#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

inline constexpr absl::string_view kOfSteppingJobs = "Of jobs that have recorded steps or phases";

inline constexpr MetricInfo kGoodputMetrics[] = {
    {"tacho_job_goodput_seconds_total", "counter", "s", "job, bucket",
     "Wall time by what it went to, each second in exactly one bucket: `productive_step`, "
     "`initializing`, `compiling`, `restoring`, `data_wait`, `checkpoint`, `evaluation`, `wasted`, "
     "`stalled`, `down`, `other`; `docs/goodput.md` defines them; here steps that are done "
     "again are `wasted`, rather than their first run, so that nothing falls",
     kOfSteppingJobs},
    {"tacho_job_wall_seconds_total", "counter", "s", "job",
     "Wall time since the first attempt began: the sum of the buckets", kOfSteppingJobs},
    {"tacho_job_goodput_ratio", "gauge", "1", "job",
     "Productive steps through wall time, since the first attempt began", kOfSteppingJobs},
    {"tacho_job_mfu_ratio", "gauge", "1", "job",
     "Model FLOPs utilisation over the newest steps, at most 1,000: `flops_per_step` / (mean step "
     "time × `device_count` × peak FLOP/s of a device)",
     "If the attempt's attributes have what it needs"},
    {"tacho_job_tokens_per_second", "gauge", "1/s", "job",
     "Of the whole job over the newest steps: growth of its counter `tokens`, or else "
     "`tokens_per_step` / mean step time",
     "If one of them is recorded"},
    {"tacho_job_step_time_seconds", "summary", "s", "job, quantile",
     "Quantiles 0.5, 0.9 and 0.99 of the newest step times, at most 1,000, of the reference task; "
     "their number "
     "(`_count`) and sum (`_sum`) are of these, and fall",
     kOfSteppingJobs},
    {"tacho_job_planned_steps", "gauge", "steps", "job", "The attribute `planned_steps`",
     "If it is recorded"},
    {"tacho_job_progress_ratio", "gauge", "1", "job",
     "Newest step through `planned_steps`, at most 1", "If it is recorded"},
    {"tacho_job_remaining_seconds", "gauge", "s", "job",
     "Estimated time left: steps left × wall time a step over the newest steps, pauses included",
     "If `planned_steps` is recorded"},
    {"tacho_job_info", "gauge", "1",
     "job, attempt, model, batch_size, device_kind, device_count, source_revision, "
     "config_fingerprint",
     "Always 1; attributes of the newest attempt are in the labels, empty if not recorded",
     kOfSteppingJobs},
    {"tacho_job_host_info", "gauge", "1", "job, host",
     "Always 1, for each host that tasks of the newest attempt ran on last: says which hosts' and "
     "chips' series are the job's",
     kOfSteppingJobs},
    {"tacho_job_host_lines_left_out", "gauge", "lines", "",
     "Lines of `tacho_job_host_info` that `metrics.max_series` left out of this scrape"},
    {"tacho_goodput_jobs", "gauge", "jobs", "", "Jobs that have a ledger now"},
    {"tacho_goodput_jobs_left_out", "gauge", "jobs", "",
     "Live jobs without a ledger, because there are more than 1,000"},
    {"tacho_goodput_ledgers_total", "counter", "ledgers", "", "Ledgers that were made"},
    {"tacho_goodput_failures_total", "counter", "ledgers", "",
     "Ledgers that could not be made, because the store could not be read"},
    {"tacho_goodput_compute_seconds_total", "counter", "s", "",
     "Time spent on making them; at most a tenth of one thread's"},
    {"tacho_goodput_oldest_seconds", "gauge", "s", "", "Age of the oldest ledger on the page"},
};

}  // namespace tacho::server::metrics

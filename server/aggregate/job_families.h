// The aggregates of jobs as metric families, bounded in number. docs/metrics.md lists them.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <vector>

#include "server/aggregate/job_aggregates.h"

namespace tacho::server {

// Families by name. What is about a job as a whole comes first, then its metrics, job after job,
// until `max_series` lines are made; tacho_aggregate_series_left_out counts the rest.
//
//   gauge    every stat: sum avg min max p50 p90 p99 count non_finite
//   counter  sum, and min and max to tell who is ahead; falls when a task leaves, as a counter that
//            was reset does
std::vector<prometheus::MetricFamily> JobFamilies(const std::vector<JobAggregate>& jobs,
                                                  size_t max_series);

}  // namespace tacho::server

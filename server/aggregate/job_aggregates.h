// What all jobs look like now: for each job and metric a summary over the series that report, and
// for each job who reports and how far it is. Computed from the newest rows in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/aggregate/summary.h"
#include "storage/store.h"

namespace tacho::server {

// A job that has gone silent stays listed for this long, with no tasks, so that an alert on "no
// task reports" fires before the job leaves the page.
inline constexpr absl::Duration kJobLinger = absl::Hours(1);

struct MetricAggregate {
  std::shared_ptr<const storage::Metric> metric;
  Summary summary;  // Of at least one value.
};

struct JobAggregate {
  std::shared_ptr<const std::string> job;
  // Of what reports now; highest and lowest of the tasks' newest steps.
  uint64_t tasks = 0;
  uint64_t hosts = 0;
  std::optional<int64_t> last_step_max;
  std::optional<int64_t> last_step_min;
  std::vector<MetricAggregate> metrics;  // By name.
  // Of what is remembered: the newest attempt, and the time of the newest row.
  uint32_t attempt = 0;
  int64_t last_time_ns = 0;
};

// By job name. A series counts with its newest value if a row of it was received within `staleness`
// before `now`; if two layouts have it (its task was restarted) the newer row counts. A series
// whose newest row has no value for it is left out, and so are histograms' buckets.
std::vector<JobAggregate> AggregateJobs(const storage::Store& store, absl::Time now,
                                        absl::Duration staleness);

}  // namespace tacho::server

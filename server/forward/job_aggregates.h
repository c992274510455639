// The aggregates of jobs that the collector's page of metrics shows as tacho_job_…, as samples for
// a receiver. They are made of what jobs show now, so there is no past of them to catch up with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/forward/series_text.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

struct AggregateSample {
  SeriesTextPtr text;
  double value = 0;
};

// Immutable, so thread-safe. A pure function of its configuration.
class JobAggregates {
 public:
  // As SeriesNaming::Create(), of `aggregates.match`.
  static absl::StatusOr<JobAggregates> Create(const config::v1::Forward& config,
                                              absl::string_view key);

  // Those of a page in Prometheus' text format; other lines of it may be anything. Memory is linear
  // in the number of lines about jobs, which `metrics.max_series` bounds.
  //   others  as ReadPrometheusText().
  absl::StatusOr<std::vector<AggregateSample>> Read(absl::string_view page) const;

 private:
  Selectors selectors_;
  bool otlp_ = false;
};

}  // namespace tacho::server::forward

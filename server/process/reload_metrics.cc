#include "server/process/reload_metrics.h"

#include "server/metrics/metric_families.h"

namespace tacho::server::process {

ReloadMetrics::ReloadMetrics(prometheus::Registry* registry)
    : last_successful_(metrics::NewGauge(registry, "tacho_config_last_reload_successful")),
      last_success_seconds_(
          metrics::NewGauge(registry, "tacho_config_last_reload_success_timestamp_seconds")),
      successes_(
          metrics::NewCounter(registry, "tacho_config_reloads_total", {{"result", "success"}})),
      failures_(
          metrics::NewCounter(registry, "tacho_config_reloads_total", {{"result", "failure"}})) {}

void ReloadMetrics::Started(absl::Time now) {
  last_successful_.Set(1);
  last_success_seconds_.Set(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
}

void ReloadMetrics::Reloaded(bool success, absl::Time now) {
  (success ? successes_ : failures_).Increment();
  if (success) return Started(now);
  last_successful_.Set(0);
}

void ReloadMetrics::Fill(v1::GetStatsResponse::ReloadStats* stats) const {
  stats->set_in_force_unix_ns(
      absl::ToUnixNanos(absl::UnixEpoch() + absl::Seconds(last_success_seconds_.Value())));
  stats->set_done(static_cast<uint64_t>(successes_.Value()));
  stats->set_refused(static_cast<uint64_t>(failures_.Value()));
}

}  // namespace tacho::server::process

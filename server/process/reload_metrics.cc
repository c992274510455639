#include "server/process/reload_metrics.h"

namespace tacho::server::process {
namespace {

prometheus::Gauge& MakeGauge(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

prometheus::Counter& MakeCounter(prometheus::Registry* registry, const char* result) {
  return prometheus::BuildCounter()
      .Name("tacho_config_reloads_total")
      .Help("Reloads of the configuration that were asked for")
      .Register(*registry)
      .Add({{"result", result}});
}

}  // namespace

ReloadMetrics::ReloadMetrics(prometheus::Registry* registry)
    : last_successful_(MakeGauge(registry, "tacho_config_last_reload_successful",
                                 "1 if the configuration in force is the newest that was asked "
                                 "for, 0 if the last reload was refused")),
      last_success_seconds_(MakeGauge(registry,
                                      "tacho_config_last_reload_success_timestamp_seconds",
                                      "When the configuration in force was read, Unix time")),
      successes_(MakeCounter(registry, "success")),
      failures_(MakeCounter(registry, "failure")) {}

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

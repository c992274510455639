#include "server/conditions/condition_metrics.h"

#include "server/metrics/metric_families.h"

namespace tacho::server::conditions {

using metrics::NewCounter;
using metrics::NewGauge;

ConditionMetrics::ConditionMetrics(prometheus::Registry* registry)
    : judged_(NewCounter(registry, "tacho_job_conditions_evaluated_total")),
      seconds_(metrics::NewHistogram(registry, "tacho_conditions_evaluation_seconds",
                                     {0.0001, 0.001, 0.01, 0.1, 1, 10})),
      fallen_behind_(NewCounter(registry, "tacho_conditions_fallen_behind_total")),
      events_stored_(
          NewCounter(registry, "tacho_conditions_events_total", {{"outcome", "stored"}})),
      events_refused_(
          NewCounter(registry, "tacho_conditions_events_total", {{"outcome", "refused"}})),
      jobs_(NewGauge(registry, "tacho_conditions_jobs")),
      series_(NewGauge(registry, "tacho_conditions_window_series")),
      bytes_(NewGauge(registry, "tacho_conditions_window_bytes")),
      series_left_out_(NewCounter(registry, "tacho_conditions_series_left_out_total")),
      jobs_left_out_(NewCounter(registry, "tacho_conditions_jobs_left_out_total")) {}

void ConditionMetrics::Judged(absl::Duration took) {
  judged_.Increment();
  seconds_.Observe(absl::ToDoubleSeconds(took));
}

void ConditionMetrics::EventsSettled(uint64_t stored, uint64_t refused) {
  events_stored_.Increment(static_cast<double>(stored));
  events_refused_.Increment(static_cast<double>(refused));
}

void ConditionMetrics::Show(const WindowBuilder::Stats& stats) {
  const auto growth = [](uint64_t before, uint64_t now) {
    return static_cast<double>(now < before ? now : now - before);
  };
  jobs_.Set(static_cast<double>(stats.jobs));
  series_.Set(static_cast<double>(stats.tracks));
  bytes_.Set(static_cast<double>(stats.bytes));
  series_left_out_.Increment(growth(shown_.tracks_left_out, stats.tracks_left_out));
  jobs_left_out_.Increment(growth(shown_.jobs_left_out, stats.jobs_left_out));
  shown_ = stats;
}

}  // namespace tacho::server::conditions

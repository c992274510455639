#include "server/conditions/condition_metrics.h"

#include <string>

namespace tacho::server::conditions {
namespace {

prometheus::Counter& NewCounter(prometheus::Registry* registry, const char* name, const char* help,
                                const prometheus::Labels& labels = {}) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry).Add(labels);
}

prometheus::Gauge& NewGauge(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

constexpr char kEvents[] = "tacho_conditions_events_total";
constexpr char kEventsHelp[] = "Events of conditions that were stored, or refused and tried again.";

}  // namespace

ConditionMetrics::ConditionMetrics(prometheus::Registry* registry)
    : judged_(NewCounter(registry, "tacho_job_conditions_evaluated_total",
                         "Times that a job was judged.")),
      seconds_(
          prometheus::BuildHistogram()
              .Name("tacho_conditions_evaluation_seconds")
              .Help("Time that it took to judge one job.")
              .Register(*registry)
              .Add({}, prometheus::Histogram::BucketBoundaries{0.0001, 0.001, 0.01, 0.1, 1, 10})),
      fallen_behind_(NewCounter(registry, "tacho_conditions_fallen_behind_total",
                                "Times that more was committed than waits for the judge.")),
      events_stored_(NewCounter(registry, kEvents, kEventsHelp, {{"outcome", "stored"}})),
      events_refused_(NewCounter(registry, kEvents, kEventsHelp, {{"outcome", "refused"}})),
      jobs_(NewGauge(registry, "tacho_conditions_jobs", "Jobs that are looked at.")),
      series_(NewGauge(registry, "tacho_conditions_window_series",
                       "Series whose recent values are held to judge by.")),
      bytes_(NewGauge(registry, "tacho_conditions_window_bytes", "Memory of these values.")),
      series_left_out_(NewCounter(registry, "tacho_conditions_series_left_out_total",
                                  "Series for which these bytes had no room.")),
      jobs_left_out_(NewCounter(registry, "tacho_conditions_jobs_left_out_total",
                                "Batches and events of jobs beyond conditions.max_jobs.")) {}

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

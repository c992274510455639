#include "server/query/query_metrics.h"

#include <utility>

#include "server/metrics/metric_families.h"

namespace tacho::server::query {
namespace {

// From an index look-up to the default of query.timeout, seconds.
const prometheus::Histogram::BucketBoundaries& Boundaries() {
  static const auto* const boundaries =
      new prometheus::Histogram::BucketBoundaries{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 120};
  return *boundaries;
}

}  // namespace

QueryMetrics::QueryMetrics(std::shared_ptr<prometheus::Registry> registry)
    : registry_(registry ? std::move(registry) : std::make_shared<prometheus::Registry>()),
      requests_(metrics::CounterFamily(registry_.get(), "tacho_query_requests_total")),
      seconds_(metrics::HistogramFamily(registry_.get(), "tacho_query_duration_seconds")),
      active_(metrics::NewGauge(registry_.get(), "tacho_query_active")),
      samples_(metrics::NewCounter(registry_.get(), "tacho_query_samples_returned_total")),
      watches_(metrics::NewGauge(registry_.get(), "tacho_query_watches")),
      watched_samples_(metrics::NewCounter(registry_.get(), "tacho_query_watched_samples_total")) {}

void QueryMetrics::RecordWatch(const std::string& method, const absl::Status& status) {
  requests_.Add({{"method", method}, {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
}

void QueryMetrics::Record(const std::string& method, const absl::Status& status,
                          absl::Duration took) {
  requests_.Add({{"method", method}, {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
  seconds_.Add({{"method", method}}, Boundaries()).Observe(absl::ToDoubleSeconds(took));
}

}  // namespace tacho::server::query

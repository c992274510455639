#include "server/query/query_metrics.h"

#include <utility>

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
      requests_(prometheus::BuildCounter()
                    .Name("tacho_query_requests_total")
                    .Help("Queries that ended, by method and gRPC status code.")
                    .Register(*registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("tacho_query_duration_seconds")
                   .Help("Time that queries took, waiting for their client included.")
                   .Register(*registry_)),
      active_(prometheus::BuildGauge()
                  .Name("tacho_query_active")
                  .Help("Queries at work now.")
                  .Register(*registry_)
                  .Add({})),
      samples_(prometheus::BuildCounter()
                   .Name("tacho_query_samples_returned_total")
                   .Help("Samples and buckets that Range and Export have returned.")
                   .Register(*registry_)
                   .Add({})),
      watches_(prometheus::BuildGauge()
                   .Name("tacho_query_watches")
                   .Help("Watches that are open now.")
                   .Register(*registry_)
                   .Add({})),
      watched_samples_(prometheus::BuildCounter()
                           .Name("tacho_query_watched_samples_total")
                           .Help("Samples that watches were sent as they became durable.")
                           .Register(*registry_)
                           .Add({})) {}

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

#include "server/limits/series_limiting.h"

#include <string>
#include <utility>

#include "server/limits/limit_config.h"
#include "server/metrics/metric_families.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::limits {

SeriesLimiting::SeriesLimiting(storage::Store* store, prometheus::Registry* registry,
                               const config::v1::Limits& config)
    : store_(store),
      definitions_per_second_(config.definitions_per_second()),
      definitions_burst_ns_(config.definitions_burst()) {
  auto& family = metrics::CounterFamily(registry, "tacho_limit_series_total");
  for (size_t limit = 0; limit < storage::kLimits; ++limit) {
    for (size_t action = 0; action < kActions; ++action) {
      counters_[limit][action] = &family.Add(
          {{"limit", std::string(storage::LimitKey(static_cast<storage::Limit>(limit)))},
           {"action",
            std::string(storage::ActionName(static_cast<storage::LimitAction>(action)))}});
    }
  }
}

void SeriesLimiting::Count(Refusals refusals) {
  counters_[static_cast<size_t>(refusals.limit)][static_cast<size_t>(refusals.action)]->Increment(
      static_cast<double>(refusals.series));
  ledger_.Add(std::move(refusals));
}

absl::StatusOr<std::function<void()>> SeriesLimiting::Prepare(const config::v1::Collector& config) {
  auto policy = MakeLimitPolicy(config.limits());
  if (!policy.ok()) return policy.status();
  return std::function<void()>([this, policy = *std::move(policy),
                                per_second = config.limits().definitions_per_second(),
                                burst_ns = config.limits().definitions_burst()] {
    store_->SetLimits(policy);
    definitions_per_second_ = per_second;
    definitions_burst_ns_ = burst_ns;
  });
}

}  // namespace tacho::server::limits

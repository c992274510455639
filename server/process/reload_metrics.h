// Counts the collector's reloads.
#pragma once

#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "tacho/v1/admin.pb.h"

namespace tacho::server::process {

// Thread-safe. Refers to the registry, which must outlive it.
class ReloadMetrics {
 public:
  explicit ReloadMetrics(prometheus::Registry* registry);

  void Started(absl::Time now);
  void Reloaded(bool success, absl::Time now);

  // Fills in everything but the reason of the last refusal.
  void Fill(v1::GetStatsResponse::ReloadStats* stats) const;

 private:
  prometheus::Gauge& last_successful_;
  prometheus::Gauge& last_success_seconds_;
  prometheus::Counter& successes_;
  prometheus::Counter& failures_;
};

}  // namespace tacho::server::process

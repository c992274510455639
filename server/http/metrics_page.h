// The body of /metrics: what the registry holds, the store's figures, the process' own, and the
// aggregates of every job. docs/metrics.md lists all of it.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {

struct MetricsPageOptions {
  const storage::Store* store = nullptr;           // Not owned; must outlive the page.
  std::shared_ptr<prometheus::Registry> registry;  // Metrics of the collector's other parts.
  config::v1::Collector::Metrics options;          // Durations in ns.
  std::function<absl::Time()> now = absl::Now;     // The clock of StoreOptions::now.
};

// Thread-safe.
class MetricsPage {
 public:
  explicit MetricsPage(MetricsPageOptions options);

  // Prometheus text 0.0.4, computed now. Memory grows with the series that report.
  std::string Render() const;

 private:
  const MetricsPageOptions options_;
};

}  // namespace tacho::server

// The body of /metrics: the registry's metrics, the figures of the store and of the process, and
// the aggregates of every job. docs/metrics.md lists all of it.
#pragma once

#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/aggregate/aggregator.h"
#include "server/http/readiness.h"
#include "server/process/reloadable.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::http {

struct MetricsPageOptions {
  const storage::Store* store = nullptr;           // Not owned; must outlive the page.
  std::shared_ptr<prometheus::Registry> registry;  // Metrics of the collector's other parts.
  config::v1::Collector::Metrics options;          // Durations in ns. Its rules are valid.
  std::function<absl::Time()> now = absl::Now;     // The clock of StoreOptions::now.
  log::Log log;                                    // Its lines are counted.
  const Readiness* readiness = nullptr;            // Not owned; shown if it is given.
  std::string storage_path;  // The free room there is shown. Empty: it is not.
  // Leaves the lines of jobs out; null: none.
  std::function<bool(absl::string_view job)> shows;
  aggregate::Aggregator::IsCopy is_copy;
  // Families of other parts, asked at each scrape; each may return so many lines.
  std::vector<std::function<std::vector<prometheus::MetricFamily>(size_t max_lines)>> others;
};

// Thread-safe. Reloads `metrics`.
class MetricsPage final : public process::Reloadable {
 public:
  explicit MetricsPage(MetricsPageOptions options);

  // Prometheus text 0.0.4, computed now, without the series of jobs that `rights` do not include.
  // Memory grows with the series that report.
  std::string Render(const security::Rights& rights = *security::Rights::Everything()) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool Shows(absl::string_view job, const security::Rights& rights) const;
  // All but the aggregates.
  std::string RenderOthers(const security::Rights& rights, size_t max_lines) const;
  config::v1::Collector::Metrics limits() const ABSL_LOCKS_EXCLUDED(mutex_);

  const MetricsPageOptions options_;  // As it was started.
  mutable absl::Mutex mutex_;
  config::v1::Collector::Metrics limits_ ABSL_GUARDED_BY(mutex_);
  mutable aggregate::Aggregator aggregator_;  // Its lock comes after mutex_.
};

}  // namespace tacho::server::http

// The limits on series as the configuration writes them, those in force, and what they did: counted
// exactly by limit, and in a ledger by offender.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/limits/job_refusals.h"
#include "server/limits/refusal_ledger.h"
#include "server/process/reloadable.h"
#include "storage/index/series_limits.h"
#include "storage/store.h"
#include "tacho/config/v1/limits.pb.h"

namespace tacho::server::limits {

// The limits of a configuration as the store takes them.
//   INVALID_ARGUMENT  an expression of a rule does not compile; the text names its key.
absl::StatusOr<std::shared_ptr<const storage::LimitPolicy>> MakeLimitPolicy(
    const config::v1::Limits& config);

// Thread-safe.
class SeriesLimiting final : public process::Reloadable {
 public:
  // `store`, which has the limits of `config` already, and `registry` are not owned; both must
  // outlive this.
  SeriesLimiting(storage::Store* store, prometheus::Registry* registry,
                 const config::v1::Limits& config);

  std::shared_ptr<const storage::LimitPolicy> policy() const { return store_->limits(); }

  // How many series a second one agent may define, 0 for any number, and how many at once.
  uint64_t definitions_per_second() const { return definitions_per_second_; }
  int64_t definitions_burst_ns() const { return definitions_burst_ns_; }

  // Counts series that met a limit when a layout was defined.
  void Count(Refusals refusals);
  const RefusalLedger& ledger() const { return ledger_; }
  // Samples that were refused for any reason, by job.
  JobRefusals& job_refusals() { return job_refusals_; }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  static constexpr size_t kActions = 3;

  storage::Store* const store_;
  std::atomic<uint64_t> definitions_per_second_;
  std::atomic<int64_t> definitions_burst_ns_;
  RefusalLedger ledger_;
  JobRefusals job_refusals_;
  // Made ahead, so that counting takes no lock and a dashboard sees zeros.
  prometheus::Counter* counters_[storage::kLimits][kActions];
};

}  // namespace tacho::server::limits

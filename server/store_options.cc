#include "server/store_options.h"

#include <utility>

#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "server/limits/series_limiting.h"

namespace tacho::server {

absl::StatusOr<storage::StoreOptions> StoreOptionsOf(const config::v1::Collector& config) {
  const auto& storage = config.storage();
  storage::StoreOptions options;
  options.path = storage.path();
  options.retention = absl::Nanoseconds(storage.retention());
  options.retention_bytes = storage.retention_bytes();
  options.retention_days_per_hour = storage.retention_days_per_hour();
  options.seal_age = absl::Nanoseconds(storage.seal_age());
  options.seal_rows = storage.seal_rows();
  options.queue_bytes = storage.journal_queue_bytes();
  options.ballast_bytes = storage.ballast_bytes();
  options.block_cache_bytes = storage.block_cache_bytes();
  options.column_cache_bytes = storage.column_cache_bytes();
  TACHO_ASSIGN_OR_RETURN(options.limits, limits::MakeLimitPolicy(config.limits()));
  return options;
}

void LogMissingCommits(const storage::StoreStats& stats, const log::Log& log) {
  if (stats.missing_commits == 0) return;
  log.Error("the store has lost the end of its log; agents send again what they still have",
            {{"commits", stats.missing_commits},
             {"messages", stats.missing_messages},
             {"rows", stats.missing_rows}});
}

}  // namespace tacho::server

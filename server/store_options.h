// How a collector's configuration opens its store.
#pragma once

#include "absl/status/statusor.h"
#include "proto/base/log.h"
#include "storage/model/stats.h"
#include "storage/options.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {

// Durations of `config` are in ns. The clocks, callbacks and the bucket are left for the caller.
//   INVALID_ARGUMENT  `limits` is wrong.
absl::StatusOr<storage::StoreOptions> StoreOptionsOf(const config::v1::Collector& config);

// Says so if the store was opened and has lost the end of its log.
void LogMissingCommits(const storage::StoreStats& stats, const log::Log& log);

}  // namespace tacho::server

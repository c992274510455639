// How a collector's configuration opens its store.
#pragma once

#include "absl/status/statusor.h"
#include "storage/options.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {

// Durations of `config` are in ns. The clocks, callbacks and the bucket are left for the caller.
//   INVALID_ARGUMENT  `limits` is wrong.
absl::StatusOr<storage::StoreOptions> StoreOptionsOf(const config::v1::Collector& config);

}  // namespace tacho::server

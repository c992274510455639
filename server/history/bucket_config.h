// The bucket that a collector's configuration names.
#pragma once

#include "storage/bucket/bucket_options.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::history {

// Durations of `config` are in ns. The callbacks are left for the caller.
storage::BucketOptions BucketOptionsOf(const config::v1::Collector::Bucket& config);

}  // namespace tacho::server::history

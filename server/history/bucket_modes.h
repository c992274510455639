// tacho-collector --restore-from-bucket and --check-bucket: what a bucket has, without a collector
// that runs. They stand in the collector's program because tachoctl knows nothing of stores.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::history {

// Both write the result to `out`, progress and the reason of a failure to `err`, and return the
// exit status: 0; 1 it failed or there is damage; 2 the configuration names no bucket, or a wrong
// one. Both only read the bucket.

struct RestoreRequest {
  std::string directory;  // To be made; empty, or not there.
  uint32_t shard = 0;
  // Only closed days of so many days before today; 0: none. No value: all.
  std::optional<uint32_t> days;
};
int RestoreFromBucket(const config::v1::Collector& config, const RestoreRequest& request,
                      absl::Time now, std::ostream& out, std::ostream& err);

int CheckBucket(const config::v1::Collector& config, uint32_t shard, bool deep, std::ostream& out,
                std::ostream& err);

}  // namespace tacho::server::history

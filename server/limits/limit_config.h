// Limits on series as the configuration writes them, as the store takes them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "storage/index/series_limits.h"
#include "tacho/config/v1/limits.pb.h"

namespace tacho::server::limits {

//   INVALID_ARGUMENT  an expression of a rule does not compile; the text names its key.
absl::StatusOr<std::shared_ptr<const storage::LimitPolicy>> MakeLimitPolicy(
    const config::v1::Limits& config);

}  // namespace tacho::server::limits

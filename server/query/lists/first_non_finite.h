// Where a value that is NaN or infinite came up first, and how that spread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint32_t kDefaultSpreadSeries = 100;
inline constexpr uint32_t kMaxSpreadSeries = 10'000;

// Columns that say of themselves that all of their values are finite are not decoded. Holds a block
// of one series, the job's open rows, and the series of the answer.
//   the statuses of query.proto, and those of control.Check()
absl::Status FirstNonFinite(const storage::Store& store, const v1::FirstNonFiniteRequest& request,
                            uint64_t max_series, const QueryControl& control,
                            v1::FirstNonFiniteResponse* response);

}  // namespace tacho::server::query

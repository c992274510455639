// Where a NaN or infinite value came up first, and how it spread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint32_t kDefaultSpreadSeries = 100;
inline constexpr uint32_t kMaxSpreadSeries = 10'000;

// Does not decode columns whose header says that all values are finite. Holds a chunk of one
// series, the job's open rows, and the series of the answer.
//   The statuses are those of query.proto and control.Check().
absl::Status FirstNonFinite(const storage::Store& store, const v1::FirstNonFiniteRequest& request,
                            uint64_t max_series, const QueryControl& control,
                            v1::FirstNonFiniteResponse* response);

}  // namespace tacho::server::query

// The buckets of time in which the series of an aggregate meet.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/range/range_plan.h"
#include "server/query/range/range_reader.h"
#include "server/query/read/reduce.h"

namespace tacho::server::query {

// A gap is cut out if it is at least this many times as long as the time from one sample of a
// series to the next. Shorter ones may be how the series are recorded.
inline constexpr uint64_t kIntervalsOfAGap = 5;
// Cut buckets are at least this many intervals wide: else series that are recorded in turns would
// never meet.
inline constexpr uint64_t kIntervalsOfABucket = 2;

// A grid over `extent`, which has the samples of all outputs and is not empty. Where most buckets
// would have samples it is the plain one, and only as many series are looked at as it takes to see
// that. Otherwise gaps of all series together are cut out of it. Statuses are those of the reader.
absl::StatusOr<BucketGrid> MakeSharedGrid(const RangeReader& reader,
                                          const std::vector<RangeOutput>& outputs,
                                          const AxisExtent& extent, uint32_t max_points);

}  // namespace tacho::server::query

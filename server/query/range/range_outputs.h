// Which series the answer to a Range request has, and of which stored ones each is made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/query/range/range_plan.h"
#include "storage/model/series.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// One series of the answer.
struct RangeOutput {
  std::vector<storage::SeriesPtr> members;  // One, unless they are folded.
  std::optional<uint32_t> attempt;          // Kept apart by Aggregation.by.
};

// In the order of the first member of each, then of the attempts; `attempts` are those of the job
// that are selected, ascending.
std::vector<RangeOutput> GroupSeries(const RangePlan& plan,
                                     const std::vector<storage::SeriesPtr>& series,
                                     const std::vector<uint32_t>& attempts);

// What the answer says of an output: of an aggregate, the labels that are kept apart.
void FillInfo(const RangePlan& plan, const RangeOutput& output, v1::SeriesInfo* info);

}  // namespace tacho::server::query

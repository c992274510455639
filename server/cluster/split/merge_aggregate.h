// An aggregate by time over a split job: each member combines the series of its part in the same
// buckets, and what it has in a bucket is combined with what the others have there.
//
//   SUM, COUNT, MIN, MAX   of sums, counts, and so on
//   AVG                    the quotient of SUM and COUNT, which takes two questions
//   P50, …, STDDEV         refused: they do not follow from those of the parts
//
// The buckets lie between the first and the last sample of all members, which are asked for first.
// Two things differ from an aggregate at one collector: long gaps take buckets, and the last bits
// of a sum or an average may be others, because values are added in another order.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "server/cluster/split/merge_streams.h"
#include "server/cluster/split/part_source.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

// Puts a request to all members, about the part of each.
using AskRange = std::function<PartSources<v1::RangeResponse>(const v1::RangeRequest& request)>;

//   INVALID_ARGUMENT  the function, or the axis, cannot be put together; the text says why.
//   others            as MergeRange().
absl::Status MergeAggregate(const v1::RangeRequest& request, const AskRange& ask,
                            const SplitLimits& limits, const query::QueryControl& control,
                            query::Send<v1::RangeResponse> send);

}  // namespace tacho::server::cluster

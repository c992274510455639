// One stream from those of all members about a split job. Each series lies at one member, and each
// member sends its own in order, so merging them by that order gives what one collector would send.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/cluster/split/part_source.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

// What the whole answer may have; a member knows only its part.
struct SplitLimits {
  uint64_t max_series = 0;
  uint64_t max_samples = 0;
};

// Each function returns the first status of a member that is not OK, NOT_FOUND if no member knows
// the job, or RESOURCE_EXHAUSTED if the answer would be larger than `limits`.

absl::Status MergeSeries(const PartSources<v1::ListSeriesResponse>& parts,
                         const SplitLimits& limits, const query::QueryControl& control,
                         query::Send<v1::ListSeriesResponse> send);
absl::Status MergeLatest(const PartSources<v1::LatestResponse>& parts, const SplitLimits& limits,
                         const query::QueryControl& control, query::Send<v1::LatestResponse> send);
// With `sum`, integrals of the same series are added up.
absl::Status MergeIntegrals(const PartSources<v1::IntegrateResponse>& parts, bool sum,
                            const SplitLimits& limits, const query::QueryControl& control,
                            query::Send<v1::IntegrateResponse> send);
// Without aggregation.
absl::Status MergeRange(const PartSources<v1::RangeResponse>& parts, bool packed,
                        const SplitLimits& limits, const query::QueryControl& control,
                        query::Send<v1::RangeResponse> send);
// By time. `newest`: as in the request.
absl::Status MergeEvents(const PartSources<v1::ListEventsResponse>& parts, uint32_t newest,
                         const query::QueryControl& control,
                         query::Send<v1::ListEventsResponse> send);

}  // namespace tacho::server::cluster

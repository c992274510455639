// The same metrics of several jobs or attempts side by side.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "server/query/compare/remote_subject.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// The most places of one metric that all subjects have together: 192 MiB.
inline constexpr size_t kMaxComparedPlaces = size_t{4} << 20;
// Metrics are held until all have been read, because the first message describes all subjects. What
// exceeds this is read twice.
inline constexpr size_t kHeldComparisonBytes = size_t{16} << 20;

// By step, every sample of a metric is read once, one series after the other (step_order.h), and
// folded into places. By time it is read three times, and a fourth time where max_points is not the
// default, but columns that lie in one bucket are not decoded. Counters are read once more.
// `rights` must include every subject's job. limits.max_series applies to all subjects together,
// limits.max_samples to the rows of all columns. `elsewhere` may be null: all jobs are kept here.
//   PERMISSION_DENIED  `rights` do not include a job, whether or not it exists.
//   others             the statuses of query.proto, control.Check() and `send`.
absl::Status Compare(const storage::Store& store, const v1::CompareRequest& request,
                     const RangeLimits& limits, const security::Rights& rights,
                     const QueryControl& control, const SubjectsElsewhere& elsewhere,
                     Send<v1::CompareResponse> send);

}  // namespace tacho::server::query

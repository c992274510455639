// ListJobs: which jobs, in which order, in pages.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint32_t kDefaultPageSize = 100;
inline constexpr uint32_t kMaxPageSize = 10'000;

// Jobs that were seen in the last 5 minutes before the first page come first, by name; then the
// others, the newest activity first. A running job is seen anew every second: ordered by that
// alone, it would move in front of the next page's beginning and be missed. Jobs that `rights` do
// not include are left out. What only the disk may know (states, hosts, attributes) is looked up
// for the jobs of the page and, where it is a condition, for those between them.
//   INVALID_ARGUMENT  the text names the field.
//   others            as the store and control.Check() have it.
absl::Status ListJobs(const storage::Store& store, const v1::ListJobsRequest& request,
                      absl::Time now, const QueryControl& control, v1::ListJobsResponse* response,
                      const security::Rights& rights = *security::Rights::Everything());

}  // namespace tacho::server::query

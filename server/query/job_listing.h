// ListJobs and GetJob: which jobs, in which order, in pages.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server {

inline constexpr uint32_t kDefaultPageSize = 100;
inline constexpr uint32_t kMaxPageSize = 10'000;

// Jobs that were seen in the last 5 minutes before the first page come first, by name; then the
// others, the newest activity first. A running job is seen anew every second: ordered by that
// alone, it would move in front of the next page's beginning and be missed. Jobs that `rights` do
// not include are left out.
//   INVALID_ARGUMENT  the text names the field.
absl::Status ListJobs(const storage::Store& store, const v1::ListJobsRequest& request,
                      absl::Time now, v1::ListJobsResponse* response,
                      const Rights& rights = *Rights::Everything());

//   INVALID_ARGUMENT  no name.
//   NOT_FOUND         no such job; the text names the nearest names.
absl::Status GetJob(const storage::Store& store, const v1::GetJobRequest& request,
                    v1::GetJobResponse* response);

}  // namespace tacho::server

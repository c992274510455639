// ListJobs: which jobs, in which order, in pages.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/limits/job_refusals.h"
#include "server/query/read/host_part.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint32_t kDefaultPageSize = 100;
inline constexpr uint32_t kMaxPageSize = 10'000;

// Jobs that were seen in the last 5 minutes before the first page come first, by name; then the
// others, the newest activity first. A running job is active every second: in an order by activity
// alone it would move before the start of the next page, and no page would have it. Jobs that
// `rights` do not include are left out. States, hosts and attributes may only be on disk; they are
// looked up for the jobs of the page and, where the request has conditions on them, for those
// in between. A job that the store does not have, but of which something was refused lately
// (JobRefusals::kRecent), has nothing but its name, and counts as silent. Of a split job its own
// part is listed.
//   INVALID_ARGUMENT  the text names the field.
//   others            from the store and control.Check().
absl::Status ListJobs(const storage::Store& store, const v1::ListJobsRequest& request,
                      absl::Time now, const QueryControl& control, v1::ListJobsResponse* response,
                      const security::Rights& rights = *security::Rights::Everything(),
                      const limits::JobRefusals* refusals = nullptr, const OwnPart& own = nullptr);

// Makes the summary of each split job that of the part that this collector keeps, and leaves a job
// out that has nothing of it. Null: no job is split.
void KeepOwnParts(const storage::Store& store, const OwnPart& own,
                  std::vector<storage::JobSummary>* jobs);

}  // namespace tacho::server::query

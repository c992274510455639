// GetJob: one job with its attempts, tasks, hosts, chips, incarnations and metrics.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/limits/job_refusals.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Tasks, hosts, chips and incarnations in an answer, each: 10,000 of them fit into the 4 MiB that a
// gRPC client takes by default.
inline constexpr uint32_t kDefaultEntities = 10'000;
inline constexpr uint32_t kMaxEntities = 1'000'000;

//   INVALID_ARGUMENT  the text names the field.
//   NOT_FOUND         no such job, and nothing of one was refused lately (JobRefusals::kRecent);
//                     the text names the nearest names.
//   others            from the store and control.Check().
absl::Status GetJob(const storage::Store& store, const v1::GetJobRequest& request, absl::Time now,
                    const QueryControl& control, v1::GetJobResponse* response,
                    const limits::JobRefusals* refusals = nullptr);

// Sets what lists of jobs show as well; leaves out the state and the number of metrics.
void ToProto(const storage::JobSummary& job, v1::Job* proto);
// Sets all that lists of jobs show, but refused samples.
void ToProto(const storage::JobSummary& job, const storage::JobOutline& outline, v1::JobState state,
             v1::Job* proto);

}  // namespace tacho::server::query

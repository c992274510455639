// One answer about a split job from those of all members, each of its own part. As one collector
// with all hosts would give it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

// Adds what another member says of the same job. Attempts, metrics and the highest step are the
// larger ones, times the outermost ones, the state the liveliest one; the rest is added up.
void AddJob(const v1::Job& from, v1::Job* to);

// Entities stay in their order; of each kind at most `max_entities` are kept.
void AddJobDetail(v1::GetJobResponse from, v1::GetJobResponse* to);
void CutEntities(const v1::GetJobRequest& request, v1::GetJobResponse* response);

void AddMetrics(const v1::ListMetricsResponse& from, v1::ListMetricsResponse* to);

//   RESOURCE_EXHAUSTED  more values than the request allows.
absl::StatusOr<v1::LabelValuesResponse> MergeValues(
    const v1::LabelValuesRequest& request, const std::vector<v1::LabelValuesResponse>& parts);

}  // namespace tacho::server::cluster

// Query.Cost: what a job used and costs, in the words of the protocol.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/cost/job_cost.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

//   INVALID_ARGUMENT  the text names the field.
//   NOT_FOUND         no such job; the text names the nearest names.
absl::Status GetCost(const storage::Store& store, const v1::CostRequest& request,
                     const cost::CostSettings& settings, absl::Time now,
                     const QueryControl& control, v1::CostResponse* response,
                     const goodput::AgentReports& reports = nullptr);

void ToProto(const cost::JobCost& cost, v1::CostResponse* response);

}  // namespace tacho::server::query

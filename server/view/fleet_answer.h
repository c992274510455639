// View.Fleet: the part of the fleet that a request asks for, and what has changed of it since an
// earlier answer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/lists/job_filter.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "server/view/answered_jobs.h"
#include "server/view/fleet_board.h"
#include "storage/store.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::view {

inline constexpr uint32_t kMaxSparkPoints = 120;
inline constexpr uint32_t kDefaultFleetJobs = 1000;
inline constexpr uint32_t kMaxFleetJobs = 10'000;
inline constexpr int kMaxFleetAttributes = 20;

// A request that was checked.
struct FleetPlan {
  v1::FleetRequest request;
  query::JobFilter filter;
};
//   INVALID_ARGUMENT  the text names the field.
absl::StatusOr<FleetPlan> MakeFleetPlan(const v1::FleetRequest& request);

// Makes the answer from the fleet, which is that of now; only of jobs that `rights` include.
// `salt` differs from one start of the collector to the next, so that revisions of an earlier one
// are not taken for its own.
//   as Store::Outline() and control.Check().
absl::Status AnswerFleet(const storage::Store& store, const Fleet& fleet, const FleetPlan& plan,
                         const security::Rights& rights, uint64_t salt,
                         const query::QueryControl& control, AnsweredJobs* answered,
                         v1::FleetResponse* response);

// The newest of `values`, reduced to at most `points` medians of equally many.
std::vector<float> Sparkline(const std::vector<float>& values, size_t points);

}  // namespace tacho::server::view

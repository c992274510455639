// When a job's attempts were alive, and the phases that their events bound.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/goodput/ledger.h"
#include "server/query/read/query_control.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/store.h"

namespace tacho::server::goodput {

// Whether the agent of a host reports now: it would have reported the end of a process there.
// Null: no agents are known.
using AgentReports = std::function<bool(const std::string& host)>;

// The facts of the newest kMaxGoodputAttempts attempts, ascending by number. Events of tasks other
// than the reference task only count as signs of life. An attempt ends as v1::JobState says, for
// which `now` decides whether its tasks are silent. The newest one lives if `reports` says so of
// the host of a task without an end.
absl::StatusOr<std::vector<AttemptFacts>> FactsOf(const storage::Store& store,
                                                  const storage::JobDetail& job,
                                                  std::optional<uint32_t> reference_task,
                                                  absl::Time now, const AgentReports& reports,
                                                  const query::QueryControl& control);

}  // namespace tacho::server::goodput

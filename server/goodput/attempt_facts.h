// When a job's attempts were alive, and the phases that their events bound.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/goodput/ledger.h"
#include "server/query/read/query_control.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/store.h"

namespace tacho::server::goodput {

// The facts of the newest kMaxGoodputAttempts attempts, ascending by number. Events of tasks other
// than the reference task only count as signs of life. An attempt ends as v1::JobState says, for
// which `now` decides whether its tasks are silent.
absl::StatusOr<std::vector<AttemptFacts>> FactsOf(const storage::Store& store,
                                                  const storage::JobDetail& job,
                                                  std::optional<uint32_t> reference_task,
                                                  absl::Time now,
                                                  const query::QueryControl& control);

}  // namespace tacho::server::goodput

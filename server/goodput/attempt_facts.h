// When a job's attempts were alive, and the intervals that their events bound.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/goodput/ledger.h"
#include "server/query/read/query_control.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/store.h"

namespace tacho::server::goodput {

// Takes the events of one attempt, ascending in time, and pairs them.
class PhasePairs {
 public:
  // `event` is of the reference task, or of none.
  void Add(const storage::Event& event);
  std::vector<PhaseInterval> Take();  // Ascending by begin.

 private:
  std::vector<PhaseInterval> phases_;
  // The interval of each bucket that is open, as an index.
  std::array<std::optional<size_t>, kGoodputBuckets> open_;
};

// Of the newest kMaxGoodputAttempts attempts, ascending by number. Events of tasks other than the
// reference task count as signs of life only.
absl::StatusOr<std::vector<AttemptFacts>> FactsOf(const storage::Store& store,
                                                  const storage::JobDetail& job,
                                                  std::optional<uint32_t> reference_task,
                                                  const query::QueryControl& control);

}  // namespace tacho::server::goodput

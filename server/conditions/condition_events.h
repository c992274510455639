// Conditions as events of their job: what is stored when one is raised or cleared, and what is open
// by what was stored. The fields are in docs/conditions.md.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/conditions/condition_board.h"
#include "storage/event.h"
#include "storage/store.h"

namespace tacho::server {

inline constexpr char kConditionRaised[] = "condition_raised";
inline constexpr char kConditionCleared[] = "condition_cleared";

// What happened to the condition at its `changed_ns`: raised if it is true now, else cleared.
storage::Event ToEvent(const JudgedCondition& condition);

struct OpenCondition {
  Finding finding;  // With the first culprit only.
  uint32_t attempt = 0;
  int64_t since_ns = 0;
  int64_t changed_ns = 0;
};

// Conditions of a job that were raised and not cleared, by name. Looks at its newest 10,000 events.
absl::StatusOr<std::map<std::string, OpenCondition>> ReadOpenConditions(const storage::Store& store,
                                                                        const std::string& job);

}  // namespace tacho::server

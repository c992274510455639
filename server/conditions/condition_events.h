// Conditions as events of their job: the event that is stored when one is raised or cleared, and
// the conditions that are open according to the stored events.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/conditions/condition_board.h"
#include "storage/model/event.h"
#include "storage/store.h"

namespace tacho::server::conditions {

inline constexpr char kConditionRaised[] = "condition_raised";
inline constexpr char kConditionCleared[] = "condition_cleared";

// The event of the condition's last change, at `changed_ns`: raised if it is true, else cleared.
storage::Event ToEvent(const JudgedCondition& condition);

struct OpenCondition {
  Finding finding;  // With the first culprit only.
  uint32_t attempt = 0;
  int64_t since_ns = 0;
  int64_t changed_ns = 0;
};

// The open conditions of one job, by name.
using OpenConditions = std::map<std::string, OpenCondition>;

// The conditions that were raised and not cleared. Reads the newest 10,000 events of the job.
absl::StatusOr<OpenConditions> ReadOpenConditions(const storage::Store& store,
                                                  const std::string& job);
// Applies an event that is newer than those that were read.
void ApplyEvent(const storage::Event& event, OpenConditions* open);

}  // namespace tacho::server::conditions

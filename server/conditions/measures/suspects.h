// Which tasks may hold up a job that stands still: the signs of Stalled, for each task.
#pragma once

#include <cstdint>
#include <vector>

#include "server/conditions/measures/heard.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct Suspect {
  const TaskWindow* task = nullptr;
  bool behind = false;         // Its last step is lower than most.
  bool stopped_first = false;  // Its rows stopped before most.
  double chips_busy = 0;       // Mean duty cycle since then; NaN if unknown.
  double cpu_busy = 0;         // NaN if unknown.
  bool chips_differ = false;
  bool cpu_differs = false;
  bool agent_silent = false;  // The agent of its host fell silent at the same time.

  int score() const {
    return 8 * static_cast<int>(agent_silent) + 4 * static_cast<int>(behind) +
           2 * static_cast<int>(stopped_first) + static_cast<int>(chips_differ) +
           static_cast<int>(cpu_differs);
  }
};

// Looks at `tasks`, and at tasks whose agent fell silent when the job did. The job has stood still
// since `since_ns`; normally its rows are `interval_seconds` apart. The most suspect first: by
// score, then step, then time of its last row.
std::vector<Suspect> FindSuspects(const JobWindow& window,
                                  const std::vector<const TaskWindow*>& tasks, const Hosts& hosts,
                                  int64_t since_ns, double interval_seconds);

}  // namespace tacho::server::conditions

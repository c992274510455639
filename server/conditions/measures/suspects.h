// Who holds up a job that does not move: the signs of stalled.h, for each task.
#pragma once

#include <cstdint>
#include <vector>

#include "server/conditions/measures/heard.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct Suspect {
  const TaskWindow* task = nullptr;
  bool behind = false;         // In its step.
  bool stopped_first = false;  // In its rows.
  double chips_busy = 0;       // Mean duty cycle since then; NaN if unknown.
  double cpu_busy = 0;         // NaN if unknown.
  bool chips_differ = false;
  bool cpu_differs = false;

  int score() const {
    return 4 * static_cast<int>(behind) + 2 * static_cast<int>(stopped_first) +
           static_cast<int>(chips_differ) + static_cast<int>(cpu_differs);
  }
};

// `tasks` are those to look at; nothing moves since `since_ns`; rows come `interval_seconds` apart
// when all is well. The most suspect first: by score, step, and when it was last heard.
std::vector<Suspect> FindSuspects(const JobWindow& window,
                                  const std::vector<const TaskWindow*>& tasks, const Hosts& hosts,
                                  int64_t since_ns, double interval_seconds);

}  // namespace tacho::server::conditions

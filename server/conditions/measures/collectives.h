// How long the collectives of a job take by themselves, without the wait for late tasks.
//
// The task that enters a collective last waits for nobody: its time is that of the collective. So
// the time of a collective in a step is the shortest one of its members, and that of an exchange
// between two peers the shorter one of both ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

inline constexpr double kUnknownBytes = std::numeric_limits<double>::quiet_NaN();

struct CollectiveStep {
  int64_t step = 0;
  int64_t time_ns = 0;  // When the first member wrote its row.
  double seconds = 0;
  double bytes = kUnknownBytes;  // The most of a member.
};

// A collective of many tasks, or all exchanges between two.
struct CollectiveTimes {
  std::string name;    // "dp_allreduce", of the metric collective_dp_allreduce_seconds.
  std::string metric;  // Its name at the first member.
  std::vector<const TaskWindow*> members;
  bool is_link = false;  // Between two peers: exactly two members.
  // Ascending, from the first half of the window, between, and the newest.
  std::vector<CollectiveStep> before;
  std::vector<CollectiveStep> between;
  std::vector<CollectiveStep> newest;
};

// Those that two tasks of the window or more recorded, and links that both ends recorded. `newest`
// covers at most `newest_steps` steps, the others an even choice of kOlderSteps each. A step counts
// if most members recorded it, or a third of them in the thinned past, and at least two. The result
// points into the window. Takes O(tracks * steps * log(points)).
inline constexpr size_t kOlderSteps = 48;
std::vector<CollectiveTimes> MeasureCollectives(const JobWindow& window, size_t newest_steps);

}  // namespace tacho::server::conditions

// The phases of a job's window (server/phases), and the time that they cover.
#pragma once

#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"
#include "server/phases/phases.h"

namespace tacho::server::conditions {

using phases::kStillOpen;
using phases::Phase;
using phases::PhaseInterval;
using phases::PhaseName;

// Ascending by their beginning. O(n log n) in the number of events.
std::vector<PhaseInterval> FindPhases(const JobWindow& window);

// The time that any closed phase took, whatever the task. Immutable.
class PhaseCover {
 public:
  explicit PhaseCover(const std::vector<PhaseInterval>& phases);

  // Whether phases are more than a twentieth of the time from `from_ns` to `to_ns`. O(log n).
  bool Covers(int64_t from_ns, int64_t to_ns) const;

 private:
  struct Span {
    int64_t start_ns;
    int64_t end_ns;
  };
  std::vector<Span> spans_;  // Ascending, apart from each other.
};

}  // namespace tacho::server::conditions

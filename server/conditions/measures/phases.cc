#include "server/conditions/measures/phases.h"

namespace tacho::server::conditions {

std::vector<PhaseInterval> FindPhases(const JobWindow& window) {
  phases::PhasePairs pairs;
  for (const WindowEvent& event : window.events) pairs.Add(event.kind, event.time_ns, event.task);
  return pairs.Take();
}

}  // namespace tacho::server::conditions

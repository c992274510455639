#include "server/conditions/measures/phases.h"

#include <algorithm>

namespace tacho::server::conditions {

std::vector<PhaseInterval> FindPhases(const JobWindow& window) {
  phases::PhasePairs pairs;
  for (const WindowEvent& event : window.events) pairs.Add(event.kind, event.time_ns, event.task);
  return pairs.Take();
}

PhaseCover::PhaseCover(const std::vector<PhaseInterval>& phases) {
  for (const PhaseInterval& phase : phases) {
    if (phase.open() || phase.end_ns <= phase.start_ns) continue;
    if (!spans_.empty() && phase.start_ns <= spans_.back().end_ns) {
      spans_.back().end_ns = std::max(spans_.back().end_ns, phase.end_ns);
    } else {
      spans_.push_back({phase.start_ns, phase.end_ns});
    }
  }
}

bool PhaseCover::Covers(int64_t from_ns, int64_t to_ns) const {
  auto span = std::partition_point(spans_.begin(), spans_.end(),
                                   [&](const Span& one) { return one.end_ns <= from_ns; });
  int64_t covered = 0;
  for (; span != spans_.end() && span->start_ns < to_ns; ++span) {
    covered += std::min(span->end_ns, to_ns) - std::max(span->start_ns, from_ns);
  }
  // Clocks of tasks differ a little, so that a step may seem to begin before a phase has ended.
  return covered > (to_ns - from_ns) / 20;
}

}  // namespace tacho::server::conditions

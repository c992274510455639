// The phases of a job's window (server/phases).
#pragma once

#include <vector>

#include "server/conditions/window/window.h"
#include "server/phases/phases.h"

namespace tacho::server::conditions {

using phases::kStillOpen;
using phases::Phase;
using phases::PhaseCover;
using phases::PhaseInterval;
using phases::PhaseName;

// Ascending by their beginning. O(n log n) in the number of events.
std::vector<PhaseInterval> FindPhases(const JobWindow& window);

}  // namespace tacho::server::conditions

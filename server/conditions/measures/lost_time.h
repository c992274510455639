// How much time each task costs a job by being late now and then: what a median over steps hides.
#pragma once

#include <cstddef>
#include <vector>

#include "server/conditions/measures/lateness.h"

namespace tacho::server::conditions {

struct LostTime {
  size_t task = 0;
  size_t late_steps = 0;
  size_t episodes = 0;    // Runs of late steps.
  double seconds = 0;     // The sum of its lateness in these steps.
  double share = 0;       // The same over the typical time of all steps that it recorded.
  size_t first_late = 0;  // Columns of `lateness`.
  size_t newest_late = 0;
};

// For each task that recorded half of the steps. A step is late if it is later than `deviations`
// standard deviations of a usual task's steps, and than `least_ratio` of the typical time. Takes
// O(tasks * steps).
std::vector<LostTime> MeasureLostTime(const Lateness& lateness, double deviations,
                                      double least_ratio);

}  // namespace tacho::server::conditions

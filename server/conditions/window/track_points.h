// Keeps the points of one series within a limit: the newest half in full, older ones ever more
// sparsely, so that the points cover the whole attempt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// Inserts a point into `points`, which ascend by (time, step).
//   - It replaces a point with the same time and step.
//   - A newer point whose step is not above that of earlier points replaces these: training went
//     back, and repeats these steps.
//   - A point older than all of `most` points is left out.
// Afterwards there are at most `most` points. `most` is at least 8.
inline void AddPoint(const Point& point, size_t most, std::vector<Point>* points);

// Removes every second point of the older part until at most `most` are left. It keeps the first
// point of each run of non-finite values as long as that suffices.
void ThinPoints(size_t most, std::vector<Point>* points);

// Removes older points.
void DropPointsBefore(int64_t time_ns, std::vector<Point>* points);

// AddPoint() without its fast path.
void AddAnyPoint(const Point& point, size_t most, std::vector<Point>* points);

// The fast path, inline: nearly every point is later than the last, and a step further.
inline void AddPoint(const Point& point, size_t most, std::vector<Point>* points) {
  const bool follows =
      points->empty() || (points->back().time_ns < point.time_ns &&
                          (points->back().step < point.step || point.step == kNoPointStep));
  if (follows && points->size() < most) {
    points->push_back(point);
  } else {
    AddAnyPoint(point, most, points);
  }
}

}  // namespace tacho::server::conditions

// How the points of one series are kept within a bound: the newest half of what fits as it came,
// before that ever fewer the older they are, so that the whole of an attempt is in sight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// Puts a point where it belongs in `points`, which are ascending by (time, step).
//   - A point with the time and step of one that is there replaces it.
//   - A newer one whose step is not above that of points before it supersedes these: training went
//     back, and does these steps again.
//   - One older than all of `most` points is left out.
// Afterwards there are at most `most`, which is at least 8.
inline void AddPoint(const Point& point, size_t most, std::vector<Point>* points);

// Leaves out every second point of the older part until at most `most` are left. The first of a run
// of non-finite values stays as long as that suffices.
void ThinPoints(size_t most, std::vector<Point>* points);

// Drops what is older.
void DropPointsBefore(int64_t time_ns, std::vector<Point>* points);

// AddPoint() for all points.
void AddAnyPoint(const Point& point, size_t most, std::vector<Point>* points);

// In line for what nearly every point is: later than the last, and a step further on.
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

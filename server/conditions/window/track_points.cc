#include "server/conditions/window/track_points.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "proto/base/check.h"

namespace tacho::server::conditions {
namespace {

// Fewer points than this do not show the course of a series.
constexpr size_t kLeastPoints = 8;

bool IsBefore(const Point& a, const Point& b) {
  return std::tie(a.time_ns, a.step) < std::tie(b.time_ns, b.step);
}

void AddLate(const Point& point, size_t most, std::vector<Point>* points) {
  const auto at = std::lower_bound(points->begin(), points->end(), point, IsBefore);
  if (at != points->end() && !IsBefore(point, *at)) {
    *at = point;
  } else if (at != points->begin() || points->size() < most) {
    points->insert(at, point);
  }
}

bool BeginsNonFinite(const std::vector<Point>& points, size_t i) {
  return !std::isfinite(points[i].value) && (i == 0 || std::isfinite(points[i - 1].value));
}

}  // namespace

void AddAnyPoint(const Point& point, size_t most, std::vector<Point>* points) {
  if (!points->empty() && !IsBefore(points->back(), point)) {
    AddLate(point, most, points);
  } else {
    if (point.step != kNoPointStep) {
      while (!points->empty() && points->back().time_ns < point.time_ns &&
             points->back().step >= point.step) {
        points->pop_back();
      }
    }
    points->push_back(point);
  }
  ThinPoints(most, points);
}

void ThinPoints(size_t most, std::vector<Point>* points) {
  TACHO_CHECK(most >= kLeastPoints);
  if (points->size() <= most) return;
  // Make some room at once, so that the next points need no thinning.
  const size_t wanted = most - most / 4;
  while (points->size() > wanted) {
    const size_t older = points->size() - most / 2;
    // Find the starts of runs before anything moves.
    std::vector<bool> keep(older);
    for (size_t i = 0; i < older; ++i) keep[i] = i % 2 == 0 || BeginsNonFinite(*points, i);
    size_t kept = 0;
    for (size_t i = 0; i < points->size(); ++i) {
      if (i >= older || keep[i]) (*points)[kept++] = (*points)[i];
    }
    if (kept == points->size()) {
      // All are starts of runs: remove the oldest.
      const auto excess = static_cast<std::ptrdiff_t>(kept - wanted);
      points->erase(points->begin(), points->begin() + excess);
      return;
    }
    points->resize(kept);
  }
}

void DropPointsBefore(int64_t time_ns, std::vector<Point>* points) {
  const auto first = std::lower_bound(points->begin(), points->end(), time_ns,
                                      [](const Point& p, int64_t t) { return p.time_ns < t; });
  points->erase(points->begin(), first);
}

}  // namespace tacho::server::conditions

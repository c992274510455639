// One curve of a job out of what its tasks recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct CurvePoint {
  int64_t step = 0;  // Strictly ascending. Of values without steps: 0, 1, …
  int64_t time_ns = 0;
  double value = 0;  // Finite.
};

struct Curve {
  std::string metric;
  std::vector<CurvePoint> points;

  std::vector<double> Values(size_t first, size_t last) const;  // Of [first, last).
  // Of the points at steps in [first, last].
  std::vector<double> ValuesOfSteps(int64_t first, int64_t last) const;
};

// The points that count, ascending by step: of several of one step the last. When steps go back and
// go on from there, as after a restart within an attempt, the later ones of before are dropped; a
// single one out of order is dropped itself. Points without a step are numbered if none has one,
// and dropped otherwise.
std::vector<Point> EffectivePoints(const std::vector<Point>& points);

// The median of the tasks at each step; of at most kMaxCurveTasks of them, evenly chosen. Only
// finite values. Of the first task's best metric of this signal; empty if there is none.
inline constexpr size_t kMaxCurveTasks = 64;
Curve JobCurve(const JobWindow& window, Signal signal);
// The same for each metric of the signal, such as losses of several sets of held-out data.
std::vector<Curve> JobCurves(const JobWindow& window, Signal signal);

// Whether the learning rate rose to more than `factor` times what it was, from `first_step` to
// `last_step`: a schedule with restarts, or the end of a warm-up. False if none is recorded.
bool LearningRateRose(const JobWindow& window, int64_t first_step, int64_t last_step,
                      double factor);

// Six significant digits.
std::string ValueText(double value);

}  // namespace tacho::server::conditions

// One curve of a job, from the tracks of its tasks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct CurvePoint {
  int64_t step = 0;  // Strictly ascending. Values without steps are numbered 0, 1, …
  int64_t time_ns = 0;
  double value = 0;  // Finite.
};

struct Curve {
  std::string metric;
  std::vector<CurvePoint> points;

  // The values of points [first, last).
  std::vector<double> Values(size_t first, size_t last) const;
  // The values of the points with steps in [first, last].
  std::vector<double> ValuesOfSteps(int64_t first, int64_t last) const;
};

// The points that count, strictly ascending by step. Among points of one step, the last counts.
// When steps go back and continue from there, as after a restart within an attempt, the points that
// they repeat are dropped; a single point out of order is dropped itself. Points without a step are
// numbered if none has a step, and dropped otherwise.
std::vector<Point> EffectivePoints(const std::vector<Point>& points);

// The median over tasks at each step, over finite values of at most kMaxCurveTasks tasks, chosen
// evenly. The metric is the best one of this signal on the first task that has it; the curve is
// empty if no task has it.
inline constexpr size_t kMaxCurveTasks = 64;
Curve JobCurve(const JobWindow& window, Signal signal);
// The same for each metric of the signal, such as losses of several held-out data sets.
std::vector<Curve> JobCurves(const JobWindow& window, Signal signal);

// Whether the learning rate rose to more than `factor` times an earlier value, from `first_step` to
// `last_step`: a schedule with restarts, or a warm-up. False if no learning rate is recorded.
bool LearningRateRose(const JobWindow& window, int64_t first_step, int64_t last_step,
                      double factor);

// Six significant digits.
std::string ValueText(double value);

}  // namespace tacho::server::conditions

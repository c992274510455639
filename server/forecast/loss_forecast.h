// What a loss will be at a later step, with a band, from its curve so far. Pure: no clock, no I/O.
//
// Losses of trainings fall roughly as a power of the step towards a floor,
//
//   y(s) = a + b * s^-c,   b >= 0, c > 0,
//
// (Hestness et al., "Deep Learning Scaling is Predictable, Empirically", arXiv 1712.00409, have it
// for the size of the data; curves over steps follow it as long as the schedule does not change.)
// One fit of it says little: warm-up, restarts and a decaying learning rate bend curves. So several
// fits are made, each over a later part of the curve. Each is tried on the curve itself: it is made
// again from an earlier part, and predicts what has come since. Fits that were right count more,
// and how wrong all of them were makes the band wide. docs/forecast.md says how often the truth lay
// within it for recorded runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace tacho::server::forecast {

// Some neighbouring values of a curve as one.
struct CurvePoint {
  double step = 0;   // Their mean; above 0.
  double value = 0;  // Their mean.
  double values = 1;
};

// Makes points of a curve of any length, in bounded memory: each point stands for the same number
// of values, which doubles when there are too many points. One thread at a time.
class CurvePoints {
 public:
  static constexpr size_t kMost = 4096;

  // `step` ascends. Values that are not finite are left out. Steps count from 1 here: the first
  // step of most jobs is 0, and a power of 0 means nothing.
  void Add(int64_t step, double value);
  // With the values of an incomplete last point.
  std::vector<CurvePoint> Take();

 private:
  void Close();

  std::vector<CurvePoint> points_;
  CurvePoint open_;
  size_t open_values_ = 0;
  size_t values_a_point_ = 1;
};

struct LossForecast {
  double value = 0;  // The most likely mean of the values around that step.
  double low = 0;    // The mean lies between these with a probability of about kBandShare.
  double high = 0;
  double now = 0;  // The mean of the newest tenth of the steps, to compare.
};

inline constexpr double kBandShare = 0.8;
// Fewer values, or points that span less than this factor of steps, show no curve.
inline constexpr size_t kLeastForecastPoints = 30;
// A forecast reaches this far: the step may be so many times the newest one.
inline constexpr double kFarthestForecast = 20;

// `points` ascend by step; `at_step` counts from 1, as theirs do.
//   FAILED_PRECONDITION  there is too little of the curve, or the step is too far; the text says
//                        what is missing.
//   OUT_OF_RANGE         the step is not after the newest one.
absl::StatusOr<LossForecast> ForecastLoss(const std::vector<CurvePoint>& points, double at_step);

}  // namespace tacho::server::forecast

// Oscillating: the loss swings to and fro instead of falling.
//
// Definition. Of the newest `points` losses, less the median of the quarter of them around each:
// there is a lag k, at most a quarter of them, at which the values are correlated with themselves
// by more than `correlation` after having been anticorrelated by more than `anticorrelation` at a
// smaller lag; both halves show the same by half as much; and the swing, half of the distance from
// the 10 % to the 90 % quantile, is more than `least_swing` of the median's absolute value. k is
// the period. A period of 2 is what a learning rate beyond the edge of stability makes (Cohen et
// al., 2021).
//
// Not judged while the learning rate itself goes up in these steps by more than half: cyclic
// schedules make the loss follow them. A loss whose sign changes is not judged: its swing has no
// measure. Source: own. With white noise the correlation at one lag of 96 points has the standard
// deviation 0.1, so the default of 0.5 is five of them, with the anticorrelation and the halves on
// top.
//
// Needs loss, `points` values. Warning; reason LossOscillates. Score: the swing, relative.
// Limits: a period longer than a quarter of the points, and chaos without one, are not seen.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct OscillatingSettings {
  uint32_t points = 96;
  double correlation = 0.5;
  double anticorrelation = 0.4;
  double least_swing = 0.05;

  friend bool operator==(const OscillatingSettings&, const OscillatingSettings&) = default;
};

Finding DetectOscillating(const JobWindow& window, const OscillatingSettings& settings);

}  // namespace tacho::server::conditions

// How fast something grows, whatever a few wild values say, and how sure that is.
#pragma once

#include "absl/types/span.h"

namespace tacho::server::conditions {

// The slope of Theil (1950) and Sen (1968): the median of the slopes of all pairs of points. Its
// 95 % interval is Sen's, from the variance of Kendall's S without ties.
struct RobustTrend {
  bool valid = false;  // There were at least 4 points, of different x.
  double slope = 0;
  double slope_low = 0;
  double slope_high = 0;
  double intercept = 0;  // Median of y - slope x.
  // Kendall's tau-a: share of pairs that rise less those that fall. 1: every later value is higher.
  double tau = 0;
  // Of Mann and Kendall: tau through its standard deviation if there were no trend.
  double z = 0;

  double At(double x) const { return intercept + slope * x; }
};

// x ascends. Of n points all n (n - 1) / 2 pairs are looked at: give it few.
RobustTrend FitTrend(absl::Span<const double> x, absl::Span<const double> y);

}  // namespace tacho::server::conditions

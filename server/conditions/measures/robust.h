// Statistics that a few wild values do not move: spread, trend, change point; and a line with its
// uncertainty. Values are finite.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace tacho::server::conditions {

// A robust standard deviation: 1.4826 × the median distance from `center`. The factor makes it the
// standard deviation of a normal distribution (Rousseeuw & Croux 1993).
double ScaledMad(absl::Span<const double> values, double center);

// ScaledMad() around the median, or the estimate from the upper tail if that is larger: the
// distance of the 95 % quantile from the median over 1.645. For values with a skewed or heavy upper
// tail.
double UpperNoise(absl::Span<const double> values);

// Each value minus the median of the `width` values around it (fewer at the ends). It removes the
// course of a curve, including steps in it.
std::vector<double> OffRunningMedian(absl::Span<const double> values, size_t width);

// The correlation of values with themselves `lag` later, their mean removed: -1 to 1; 0 if they are
// constant.
double Autocorrelation(absl::Span<const double> values, size_t lag);

// y = intercept + slope x by least squares. Correlation between neighbouring points widens the
// standard error of the slope: n becomes n (1-r)/(1+r), where r is the correlation at lag 1, if it
// is positive (Bartlett 1935; Bayley & Hammersley 1946).
struct Line {
  double slope = 0;
  double intercept = 0;
  double slope_error = 0;
  double residual = 0;  // Standard deviation of the residuals.
  bool valid = false;   // At least 4 points, with different x.

  double At(double x) const { return intercept + slope * x; }
};
// `x` and `y` have the same size.
Line FitLine(absl::Span<const double> x, absl::Span<const double> y);

// The slope of Theil (1950) and Sen (1968): the median of the slopes of all pairs of points. Its
// 95 % interval is Sen's, from the variance of Kendall's S without ties.
struct RobustTrend {
  bool valid = false;  // At least 4 points, with different x.
  double slope = 0;
  double slope_low = 0;
  double slope_high = 0;
  double intercept = 0;  // Median of y - slope x.
  double tau = 0;        // Kendall's tau-a: share of pairs that rise minus share that fall.
  double z = 0;          // Mann-Kendall: tau over its standard deviation without a trend.

  double At(double x) const { return intercept + slope * x; }
};
// `x` ascends, and has the size of `y`. Looks at all n (n - 1) / 2 pairs: pass few points.
RobustTrend FitTrend(absl::Span<const double> x, absl::Span<const double> y);

struct ChangePoint {
  size_t index = 0;  // The index of the first value after the change.
  double p = 1;      // Probability of a rise this large by chance, for independent values.
};
// The split into two parts, each with at least `margin` values, that the Mann-Whitney test finds
// least likely, with larger values after it. Ties get the mean of their ranks. p is that of the
// test, times the number of splits (Bonferroni); 1 if there are too few values. O(n log n).
ChangePoint FindRise(const std::vector<double>& values, size_t margin);

}  // namespace tacho::server::conditions

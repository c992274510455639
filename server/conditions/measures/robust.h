// Statistics that a few wild values do not move, and a line with its uncertainty. Values are
// finite.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace tacho::server::conditions {

// Between the two values that are nearest, linearly; 0 if there are none. `share` is in 0..1.
double Quantile(std::vector<double> values, double share);
double Median(std::vector<double> values);

// A standard deviation by the middle of the values: 1.4826 × the median distance from `center`
// (that factor makes it the standard deviation of a normal distribution; Rousseeuw & Croux 1993).
double ScaledMad(absl::Span<const double> values, double center);

// The same, or what the upper tail says if that is wider: the 95 % quantile's distance from the
// median over 1.645. For values that are skewed or heavy-tailed upwards.
double UpperNoise(absl::Span<const double> values);

// What is left of each value less the median of the `width` values around it (fewer at the ends):
// the course of a curve off, steps in it too.
std::vector<double> OffRunningMedian(absl::Span<const double> values, size_t width);

// y = intercept + slope x by least squares. The standard error of the slope is widened for what
// remains correlated from one point to the next: n becomes n (1-r)/(1+r) with r the correlation at
// lag 1, if that is positive (Bartlett 1935; Bayley & Hammersley 1946).
struct Line {
  double slope = 0;
  double intercept = 0;
  double slope_error = 0;
  double residual = 0;  // Standard deviation of what is left.
  bool valid = false;   // There were 4 points, and not all of one x.

  double At(double x) const { return intercept + slope * x; }
};
Line FitLine(absl::Span<const double> x, absl::Span<const double> y);

// Of values, whose mean is taken off, with themselves `lag` later: -1..1; 0 if they are constant.
double Autocorrelation(absl::Span<const double> values, size_t lag);

}  // namespace tacho::server::conditions

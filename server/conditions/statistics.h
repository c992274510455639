// Robust statistics of a few numbers. Values must be finite.
#pragma once

#include <vector>

namespace tacho::server {

// A median absolute deviation times this estimates the standard deviation of normal noise:
// 1 / (the 0.75-quantile of the standard normal distribution).
inline constexpr double kSigmaOfMad = 1.4826;

// The middle one, or the mean of the middle two; NaN if there are none. O(n).
double Median(std::vector<double> values);

// The median of |value - center|, raw; NaN if there are none. O(n).
double MedianDeviation(std::vector<double> values, double center);

// The smallest value that at least the share q of all do not exceed; NaN if there are none. O(n).
double NearestRank(std::vector<double> values, double q);

}  // namespace tacho::server

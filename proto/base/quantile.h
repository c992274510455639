// Quantiles and medians of numbers, with the same arithmetic wherever we show them: linear
// interpolation between the closest ranks, as Prometheus' quantile() does. Values are not NaN.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "proto/base/check.h"

namespace tacho {

// The q-quantile (0 to 1) of `sorted`, which ascends. NaN if it is empty.
double QuantileOfSorted(const std::vector<double>& sorted, double q);

// The same of values in any order, in linear time. 0 if there are none.
double Quantile(std::vector<double> values, double q);
double Median(std::vector<double> values);

// The middle value; the upper one of two. For values that must not be averaged, such as steps.
template <typename T>
T UpperMedian(std::vector<T> values) {
  TACHO_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tacho

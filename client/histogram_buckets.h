// Exponential buckets of a histogram.
#pragma once

#include <cstdint>

namespace tacho::client {

// An observation counts in the first bucket whose upper bound it does not exceed; the bounds are
// first, first * factor, first * factor^2, …, and one more bucket has what is above the last, NaN
// included. Zero and negative observations count in the first.
//
// The default is for seconds and norms: 0.0001 to 838.9, each bound twice the one before. A
// histogram is a series for each bucket at the collector, so be sparing.
struct HistogramBuckets {
  double first = 1e-4;  // > 0
  double factor = 2;    // > 1
  uint32_t count = 24;  // Bounds, 1 to 64.
};

}  // namespace tacho::client

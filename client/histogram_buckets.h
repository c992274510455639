// Exponential buckets of a histogram.
#pragma once

#include <cstdint>

namespace tacho::client {

// An observation counts in the first bucket whose upper bound it does not exceed. The bounds are
// first, first * factor, first * factor^2, …; one more bucket counts what is above the last bound,
// including NaN. Zero and negative observations count in the first bucket.
//
// The default is for seconds and norms: 0.0001 to 838.9, each bound twice the one before. A
// histogram is one series for each bucket at the collector, so use few.
struct HistogramBuckets {
  double first = 1e-4;  // > 0
  double factor = 2;    // > 1
  uint32_t count = 24;  // Bounds, 1 to 64.
};

}  // namespace tacho::client

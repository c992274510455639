// The observations of one histogram. Internal to the recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/histogram_buckets.h"

namespace tacho::client {

// The bounds; nullopt if `buckets` breaks the limits of HistogramBuckets, or if the bounds are not
// all finite and ascending.
std::optional<std::vector<double>> MakeBounds(const HistogramBuckets& buckets);

// Allocates all of its memory when it is constructed.
class LiveHistogram {
 public:
  explicit LiveHistogram(std::vector<double> bounds);

  // NaN and +infinity count above the last bound, -infinity in the first bucket. None of them
  // enters the sum, which would never recover.
  void Observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  std::span<const uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }

  // Whether something was observed since the last call.
  bool TakeChanged();

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // One more than bounds.
  double sum_ = 0;
  bool changed_ = false;
};

}  // namespace tacho::client

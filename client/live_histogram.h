// What a recorder has observed of one histogram. Internal to the recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/histogram_buckets.h"

namespace tacho::client {

// The bounds; nothing if they are not what HistogramBuckets says, or not all finite and ascending.
std::optional<std::vector<double>> MakeBounds(const HistogramBuckets& buckets);

// Memory is fixed from the beginning.
class LiveHistogram {
 public:
  explicit LiveHistogram(std::vector<double> bounds);

  // Not finite: counted above the last bound, but for -infinity, and left out of the sum, which
  // would never recover.
  void Observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  std::span<const uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }

  // Whether something was observed since it was last asked.
  bool TakeChanged();

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // One more than bounds.
  double sum_ = 0;
  bool changed_ = false;
};

}  // namespace tacho::client

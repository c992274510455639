// Many durations in little memory: how many fell into each bucket, buckets 2 % apart.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tacho::bench {

// One thread at a time.
class Latencies {
 public:
  void Add(double seconds) {
    ++buckets_[BucketOf(seconds)];
    ++count_;
    max_ = std::max(max_, seconds);
  }

  uint64_t count() const { return count_; }
  double max() const { return max_; }

  // Seconds, at most 2 % too high; 0 if there are none.
  double Quantile(double q) const {
    uint64_t left = static_cast<uint64_t>(q * static_cast<double>(count_));
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      if (buckets_[bucket] > left)
        return std::min(max_, kMin * std::exp(kStep * static_cast<double>(bucket + 1)));
      left -= buckets_[bucket];
    }
    return max_;
  }

 private:
  static constexpr double kMin = 10e-6;
  static constexpr double kStep = 0.0198;   // ln 1.02
  static constexpr size_t kBuckets = 1024;  // To hours.

  static size_t BucketOf(double seconds) {
    if (seconds <= kMin) return 0;
    return std::min(kBuckets - 1, static_cast<size_t>(std::log(seconds / kMin) / kStep));
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  double max_ = 0;
};

}  // namespace tacho::bench

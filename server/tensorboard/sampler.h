// Chooses at most N of a series' points so that a plot of them loses nothing that stands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tacho::server::tb {

struct ScalarPoint {
  int64_t step = 0;
  int64_t time_ns = 0;
  double value = 0;
};

// Points come in any order; what is chosen does not depend on it but for points that are equal in
// step, time and value. Not thread-safe. Holds N points at most.
//
// Up to N points are all returned. More are put into buckets of 2^k steps, with the smallest k for
// which (N - 1) / 3 buckets hold them; their borders are multiples of 2^k, so that more points move
// none of them until k grows. Each bucket gives its lowest and its highest finite point and its
// first one that is NaN or infinite, or its last point if all are finite; and the newest point of
// all, the last at the highest step, is always there. With N below 4 there is one bucket, of which
// the first of (not finite, highest, lowest) are given for which there is room.
class ScalarSampler {
 public:
  explicit ScalarSampler(size_t max_points);

  void Add(const ScalarPoint& point);

  // By step, then time. The sampler is empty afterwards.
  std::vector<ScalarPoint> Take();

 private:
  struct Bucket {
    std::optional<ScalarPoint> lowest;
    std::optional<ScalarPoint> highest;
    std::optional<ScalarPoint> not_finite;
    std::optional<ScalarPoint> last;  // Always there once the bucket was used.
  };

  // One bucket of 2^64 steps takes everything.
  int64_t KeyOf(int64_t step) const { return shift_ >= 64 ? 0 : step >> shift_; }
  void AddToBucket(const ScalarPoint& point);
  Bucket& BucketOf(int64_t step);
  void Widen();
  void Offer(const Bucket& bucket, std::vector<ScalarPoint>* points) const;

  const size_t max_points_;
  const size_t max_buckets_;
  std::vector<ScalarPoint> all_;  // While there are no more than max_points_.
  bool bucketed_ = false;
  int shift_ = 0;
  std::map<int64_t, Bucket> buckets_;
  // The one that was used last, mostly the next as well; null: none.
  Bucket* current_ = nullptr;
  int64_t current_key_ = 0;
};

}  // namespace tacho::server::tb

#include "server/tensorboard/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::tb {
namespace {

bool Before(const ScalarPoint& a, const ScalarPoint& b) {
  return std::tie(a.step, a.time_ns) < std::tie(b.step, b.time_ns);
}

bool Same(const ScalarPoint& a, const ScalarPoint& b) {
  return a.step == b.step && a.time_ns == b.time_ns &&
         std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}

// Replaces what is kept by the point if that comes first in an order.
template <typename First>
void KeepFirst(const ScalarPoint& point, const First& first, std::optional<ScalarPoint>* kept) {
  if (!kept->has_value() || first(point, **kept)) *kept = point;
}

bool Lower(const ScalarPoint& a, const ScalarPoint& b) {
  return a.value < b.value || (a.value == b.value && Before(a, b));
}

bool Higher(const ScalarPoint& a, const ScalarPoint& b) {
  return a.value > b.value || (a.value == b.value && Before(a, b));
}

}  // namespace

ScalarSampler::ScalarSampler(size_t max_points)
    : max_points_(max_points),
      max_buckets_(std::max<size_t>(1, max_points == 0 ? 0 : (max_points - 1) / 3)) {}

void ScalarSampler::Add(const ScalarPoint& point) {
  if (bucketed_) return AddToBucket(point);
  if (all_.size() < max_points_) {
    all_.push_back(point);
    return;
  }
  bucketed_ = true;
  for (const ScalarPoint& earlier : std::exchange(all_, {})) AddToBucket(earlier);
  AddToBucket(point);
}

ScalarSampler::Bucket& ScalarSampler::BucketOf(int64_t step) {
  if (current_ != nullptr && KeyOf(step) == current_key_) return *current_;
  const auto span = [&] {
    const int64_t key = KeyOf(step);
    const int64_t first = buckets_.empty() ? key : std::min(key, buckets_.begin()->first);
    const int64_t last = buckets_.empty() ? key : std::max(key, buckets_.rbegin()->first);
    return static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
  };
  while (span() >= max_buckets_) Widen();
  current_key_ = KeyOf(step);
  current_ = &buckets_[current_key_];
  return *current_;
}

void ScalarSampler::AddToBucket(const ScalarPoint& point) {
  Bucket& bucket = BucketOf(point.step);
  if (!bucket.last || !Before(point, *bucket.last)) bucket.last = point;
  if (std::isfinite(point.value)) {
    KeepFirst(point, Lower, &bucket.lowest);
    KeepFirst(point, Higher, &bucket.highest);
  } else {
    KeepFirst(point, Before, &bucket.not_finite);
  }
}

void ScalarSampler::Widen() {
  ++shift_;
  std::map<int64_t, Bucket> wide;
  for (const auto& [key, bucket] : buckets_) {
    const auto [it, added] = wide.try_emplace(shift_ >= 64 ? 0 : key >> 1, bucket);
    if (added) continue;
    Bucket& into = it->second;
    TACHO_CHECK(bucket.last.has_value() && into.last.has_value());
    if (!Before(*bucket.last, *into.last)) into.last = bucket.last;
    if (bucket.lowest) KeepFirst(*bucket.lowest, Lower, &into.lowest);
    if (bucket.highest) KeepFirst(*bucket.highest, Higher, &into.highest);
    if (bucket.not_finite) KeepFirst(*bucket.not_finite, Before, &into.not_finite);
  }
  buckets_ = std::move(wide);
  current_ = nullptr;
}

void ScalarSampler::Offer(const Bucket& bucket, std::vector<ScalarPoint>* points) const {
  std::vector<ScalarPoint> offered;
  if (bucket.not_finite) offered.push_back(*bucket.not_finite);
  if (bucket.highest) offered.push_back(*bucket.highest);
  if (bucket.lowest) offered.push_back(*bucket.lowest);
  if (!bucket.not_finite) offered.push_back(*bucket.last);
  TACHO_CHECK(points->size() < max_points_);
  const size_t room = max_points_ - 1 - points->size();
  if (offered.size() > room) offered.resize(room);
  points->insert(points->end(), offered.begin(), offered.end());
}

std::vector<ScalarPoint> ScalarSampler::Take() {
  std::vector<ScalarPoint> points = std::exchange(all_, {});
  if (!buckets_.empty() && max_points_ > 0) {
    for (const auto& entry : buckets_) Offer(entry.second, &points);
    points.push_back(*buckets_.rbegin()->second.last);
  }
  std::stable_sort(points.begin(), points.end(), Before);
  if (bucketed_) {
    points.erase(std::unique(points.begin(), points.end(), Same), points.end());
  }
  buckets_.clear();
  current_ = nullptr;
  bucketed_ = false;
  shift_ = 0;
  return points;
}

}  // namespace tacho::server::tb

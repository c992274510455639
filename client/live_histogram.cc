#include "client/live_histogram.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/ring/ring_format.h"

namespace tacho::client {

std::optional<std::vector<double>> MakeBounds(const HistogramBuckets& buckets) {
  if (buckets.count < 1 || buckets.count > kMaxHistogramBounds) return std::nullopt;
  if (!(buckets.first > 0) || !(buckets.factor > 1)) return std::nullopt;
  std::vector<double> bounds;
  double bound = buckets.first;
  for (uint32_t i = 0; i < buckets.count; ++i) {
    // A factor that is next to 1 may not get a small bound any further.
    if (!std::isfinite(bound) || (!bounds.empty() && bound <= bounds.back())) return std::nullopt;
    bounds.push_back(bound);
    bound *= buckets.factor;
  }
  return bounds;
}

LiveHistogram::LiveHistogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

void LiveHistogram::Observe(double value) {
  const auto bound =
      std::isnan(value) ? bounds_.end() : std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  if (std::isfinite(value)) sum_ += value;
  changed_ = true;
}

bool LiveHistogram::TakeChanged() { return std::exchange(changed_, false); }

}  // namespace tacho::client

#include "agent/sources/tpu/tpu_totals.h"

#include <algorithm>
#include <utility>

namespace tacho::agent {
namespace {

bool IsRestart(int64_t start_before, const TpuDistribution& before, int64_t start,
               const TpuDistribution& now) {
  if (start != start_before || now.bounds != before.bounds || now.count < before.count) return true;
  for (size_t i = 0; i < now.counts.size(); ++i) {
    if (now.counts[i] < before.counts[i]) return true;
  }
  return false;
}

TpuDistribution Less(TpuDistribution now, const TpuDistribution& before) {
  now.count -= before.count;
  // The sum is a product with a mean, and rounded.
  now.sum = std::max(0.0, now.sum - before.sum);
  for (size_t i = 0; i < now.counts.size(); ++i) now.counts[i] -= before.counts[i];
  return now;
}

TpuDistribution Nothing(const TpuDistribution& like) { return Less(like, like); }

}  // namespace

TpuTotals::TpuTotals(absl::Time born) : born_ns_(absl::ToUnixNanos(born)) {}

void TpuTotals::AddCounter(absl::string_view port, const Key& key, int64_t start_ns, double value) {
  const TpuDistribution now = {.count = value, .sum = value, .bounds = {}, .counts = {value}};
  const std::optional<TpuDistribution> growth = Growth(port, key, start_ns, now);
  if (growth.has_value()) totals_[key].count += growth->count;
}

void TpuTotals::AddDistribution(absl::string_view port, const Key& key, int64_t start_ns,
                                const TpuDistribution& distribution) {
  const std::optional<TpuDistribution> grown = Growth(port, key, start_ns, distribution);
  if (!grown.has_value()) return;
  const TpuDistribution& growth = *grown;
  Total& total = totals_[key];
  total.count += growth.count;
  total.sum += growth.sum;
  const size_t every = (growth.bounds.size() + kMaxBounds - 1) / kMaxBounds;
  double kept = 0;
  for (size_t i = 0; i < growth.bounds.size(); ++i) {
    kept += growth.counts[i];
    if ((i + 1) % every != 0 && i + 1 != growth.bounds.size()) continue;
    total.below[growth.bounds[i]] += kept;
    kept = 0;
  }
}

std::optional<TpuDistribution> TpuTotals::Growth(absl::string_view port, const Key& key,
                                                 int64_t start_ns, const TpuDistribution& now) {
  if (start_ns != 0 && !told_.emplace(key, start_ns).second) return Nothing(now);
  const auto id = std::make_pair(std::string(port), key);
  const auto known = seen_.find(id);
  if (known == seen_.end()) {
    if (seen_.size() >= kMaxTracked) {
      ++left_out_;
      return std::nullopt;
    }
    seen_[id] = {start_ns, now};
    return start_ns >= born_ns_ ? now : Nothing(now);
  }
  const TpuDistribution growth =
      IsRestart(known->second.start_ns, known->second.last, start_ns, now)
          ? now
          : Less(now, known->second.last);
  known->second = {start_ns, now};
  return growth;
}

}  // namespace tacho::agent

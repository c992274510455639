// Adds up what senders report as differences: a series of deltas becomes a running total. In memory
// only; after a restart the totals begin at 0 again, which readers of counters take for a reset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::interop {

// Thread-safe.
class DeltaSums {
 public:
  explicit DeltaSums(size_t max_series) : max_series_(max_series) {}

  struct Added {
    std::string key;
    int64_t time_ns = 0;
    int64_t time_before_ns = 0;
    double delta = 0;
    double total = 0;  // With it.
  };
  // Adds a delta that ends at `time_ns` to the total of the series `key`. nullopt if one of that
  // time or a later one is added already: an answer was lost and the request comes again, or it is
  // out of order; and if there is no room for another series.
  std::optional<Added> Add(absl::string_view key, int64_t time_ns, double delta)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    auto found = totals_.find(key);
    if (found == totals_.end()) {
      if (totals_.size() >= max_series_) return std::nullopt;
      found = totals_.emplace(std::string(key), Total()).first;
    }
    Total& total = found->second;
    if (time_ns <= total.time_ns) return std::nullopt;
    Added added{found->first, time_ns, total.time_ns, delta};
    total.time_ns = time_ns;
    total.value += delta;
    added.total = total.value;
    return added;
  }

  // As if they had not been added. Where another one came meanwhile, its total stays too high by
  // what is taken back now.
  void TakeBack(const std::vector<Added>& all) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    for (auto added = all.rbegin(); added != all.rend(); ++added) {
      const auto found = totals_.find(added->key);
      if (found == totals_.end()) continue;
      found->second.value -= added->delta;
      if (found->second.time_ns == added->time_ns) found->second.time_ns = added->time_before_ns;
    }
  }

 private:
  struct Total {
    int64_t time_ns = INT64_MIN;
    double value = 0;
  };

  const size_t max_series_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Total> totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop

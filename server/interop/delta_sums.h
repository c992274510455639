// Adds up what senders report as differences: a series of deltas becomes a running total. In memory
// only; after a restart the totals begin at 0 again, which readers of counters take for a reset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::interop {

// Thread-safe.
class DeltaSums {
 public:
  explicit DeltaSums(size_t max_series) : max_series_(max_series) {}

  // The total of the series `key` after `delta`, which ends at `time_ns`. nullopt if a delta of
  // that time or a later one is added already: an answer was lost and the request comes again, or
  // it is out of order; and if there is no room for another series.
  std::optional<double> Add(absl::string_view key, int64_t time_ns, double delta)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    auto found = totals_.find(key);
    if (found == totals_.end()) {
      if (totals_.size() >= max_series_) return std::nullopt;
      found = totals_.emplace(std::string(key), Total()).first;
    }
    Total& total = found->second;
    if (time_ns <= total.time_ns) return std::nullopt;
    total.time_ns = time_ns;
    total.value += delta;
    return total.value;
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

// Adds up what senders report as differences: a series of deltas becomes a running total. In memory
// only; after a restart the totals begin at 0 again, which readers of counters take for a reset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::interop {

// Thread-safe.
class DeltaSums {
 public:
  static constexpr size_t kMaxKeyBytes = 4096;

  explicit DeltaSums(size_t max_series) : max_series_(max_series) {}

  struct Added {
    std::string key;
    int64_t time_ns = 0;
    int64_t time_before_ns = 0;
    double delta = 0;
    double total = 0;  // With it.
  };
  // Adds a delta that ends at `time_ns` to the total of the series `key`.
  //   ALREADY_EXISTS      one of that time or a later one is added already: an answer was lost and
  //   the
  //                       request comes again, or it is out of order.
  //   RESOURCE_EXHAUSTED  there is no room for another series, or its key is too long. Series that
  //                       have been silent for an hour make room.
  absl::StatusOr<Added> Add(absl::string_view key, int64_t time_ns, double delta)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As if they had not been added. Where another one came meanwhile, the time stays.
  void TakeBack(const std::vector<Added>& all) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Total {
    int64_t time_ns = INT64_MIN;
    double value = 0;
  };
  bool HasRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_series_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Total> totals_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_ns_ ABSL_GUARDED_BY(mutex_) = INT64_MIN;
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_) = INT64_MIN;  // newest_ns_ when room was last made.
};

}  // namespace tacho::server::interop

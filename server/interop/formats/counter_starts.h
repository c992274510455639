// When the counters of OpenTelemetry began. A counter that begins again and soon exceeds what it
// was before shows no fall: its start time alone says so
// (open-telemetry/opentelemetry-specification, metrics/data-model.md, "Resets and gaps").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::interop {

// In memory only: what begins again while the collector is down is not noticed. Thread-safe.
class CounterStarts {
 public:
  // Each takes some 30 bytes. When there are more, all are forgotten.
  explicit CounterStarts(size_t max_series) : max_series_(max_series) {}

  struct Reset {
    uint64_t series = 0;  // A hash of its key.
    int64_t start_ns = 0;
    int64_t start_before_ns = 0;
  };
  // Notes that the series `key` began at `start_ns` (0: it does not say). True if it had begun
  // before that, and so was reset; then `resets` gets it.
  bool Note(absl::string_view key, int64_t start_ns, std::vector<Reset>* resets)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As if they had not been noted, because the request comes again.
  void TakeBack(const std::vector<Reset>& resets) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t max_series_;
  absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, int64_t> starts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop

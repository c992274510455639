// Types, units and helps of foreign metrics: told with the samples, told apart from them, or
// guessed from the name.
#pragma once

#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

// A metric as a request describes it. Its name is empty where the metric is that of a series.
struct ForeignMetric : storage::Metric {
  bool typed = false;  // Its type is told; else the name of each series decides.

  // Shortened to the lengths that are allowed.
  void SetTexts(absl::string_view unit_text, absl::string_view help_text);
};

// Remembers metrics that are told apart from their samples, as remote write 1.0 does, for series
// that come later. Thread-safe.
class ToldMetrics {
 public:
  // Keeps those that have a name, up to a bound.
  void Learn(const std::deque<ForeignMetric>& metrics) ABSL_LOCKS_EXCLUDED(mutex_);
  // The metric of a series. `told` came with it; null if nothing did.
  storage::Metric Of(std::string name, const ForeignMetric* told) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, ForeignMetric> learnt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop

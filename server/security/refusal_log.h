// Who was not let in: counted, and said in the log, of which an attacker must not fill a disk.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"

namespace tacho::server {

struct RefusalLogOptions {
  std::function<absl::Time()> now = absl::Now;
  std::function<void(absl::string_view)> log;  // May be null.
  prometheus::Registry* registry = nullptr;    // Not owned; null: nothing is counted.
  absl::Duration pause = absl::Seconds(10);    // Between two lines.
};

// Thread-safe.
class RefusalLog {
 public:
  explicit RefusalLog(RefusalLogOptions options);

  void Refused(const absl::Status& why, absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const RefusalLogOptions options_;
  prometheus::Counter* unauthenticated_ = nullptr;
  prometheus::Counter* not_allowed_ = nullptr;
  absl::Mutex mutex_;
  absl::Time next_line_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t silent_ ABSL_GUARDED_BY(mutex_) = 0;  // Since the last line.
};

}  // namespace tacho::server

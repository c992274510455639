// Whether the collector takes work now, as /readyz reports.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::http {

// Thread-safe. Not ready at first: "starting".
class Readiness {
 public:
  void SetReady() ABSL_LOCKS_EXCLUDED(mutex_);
  // `reason` must not be empty: "draining".
  void SetNotReady(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Not ready while `reason` is not empty, whatever was set above: for the disk.
  void SetHeldBy(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for the clock.
  void SetClockDoubt(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // OK if ready; else DRAINING, DISK_REFUSES or CLOCK_DOUBTED of server/errors/error_table.h.
  absl::Status Check() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether SetHeldBy() holds it.
  bool IsHeld() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Empty if ready.
  std::string WhyNotReady() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::string why_not_ ABSL_GUARDED_BY(mutex_) = "starting";
  std::string held_by_ ABSL_GUARDED_BY(mutex_);
  std::string clock_doubt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::http

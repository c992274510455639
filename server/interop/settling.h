// Waits for the parts of a request that were handed to the store.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/errors/error_table.h"
#include "server/interop/write_outcome.h"

namespace tacho::server::interop {

// Answers when the last part has settled, with the first failure. Thread-safe.
class Settling {
 public:
  Settling(WriteOutcome outcome, size_t parts, std::function<void(WriteOutcome)> done)
      : done_(std::move(done)), left_(parts), outcome_(std::move(outcome)) {}

  // One part has settled.
  void Settle(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    WriteOutcome outcome;
    {
      absl::MutexLock lock(&mutex_);
      // The store's queue is full, which time heals; too large is another failure of that code.
      outcome_.status.Update(absl::IsResourceExhausted(status)
                                 ? errors::ErrorOf(errors::Failure::kOverloaded, status.message())
                                 : status);
      if (--left_ > 0) return;
      outcome = std::move(outcome_);
    }
    done_(std::move(outcome));
  }

 private:
  const std::function<void(WriteOutcome)> done_;
  absl::Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
  WriteOutcome outcome_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop

// Waits for the parts of a request: those that were handed to the store, and those that other
// members of the cluster store.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/errors/error_table.h"
#include "server/interop/passing/write_outcome.h"

namespace tacho::server::interop {

// Answers when the last part has settled, with the first failure. Thread-safe.
class Settling {
 public:
  Settling(WriteOutcome outcome, size_t parts, std::function<void(WriteOutcome)> done)
      : done_(std::move(done)), left_(parts), outcome_(std::move(outcome)) {}

  // A part that was handed to the store has settled.
  void Settle(const absl::Status& status) {
    // The store's queue is full, which time heals; too large is another failure of that code.
    Add({.status = absl::IsResourceExhausted(status)
                       ? errors::ErrorOf(errors::Failure::kOverloaded, status.message())
                       : status});
  }
  // Another member has settled a part.
  void Add(const WriteOutcome& part) ABSL_LOCKS_EXCLUDED(mutex_) {
    WriteOutcome outcome;
    {
      absl::MutexLock lock(&mutex_);
      outcome_.status.Update(part.status);
      outcome_.stored += part.stored;
      outcome_.stored_histograms += part.stored_histograms;
      outcome_.refused += part.refused;
      if (outcome_.refusal.empty()) outcome_.refusal = part.refusal;
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

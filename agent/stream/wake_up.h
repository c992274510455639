// Wakes a thread that waits on a completion queue.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "proto/base/check.h"

namespace tacho::agent {

// Ring() is for any thread, the rest for the one that waits.
class WakeUp {
 public:
  // The queue is not owned; it must outlive this.
  explicit WakeUp(grpc::CompletionQueue* queue) : queue_(queue) {}

  // The queue gives this when it rang.
  void* tag() { return this; }

  // Makes the queue give tag() soon. Several calls may be answered by one tag.
  void Ring() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ringing_ || closed_) return;
    ringing_ = true;
    alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), tag());
  }
  // Call for each tag() that came, before looking at whatever may have been the reason.
  void Answer() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(ringing_);
    ringing_ = false;
  }
  // Ring() does nothing from now on. True if a tag() is still to come.
  bool Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    return ringing_;
  }

 private:
  grpc::CompletionQueue* const queue_;
  absl::Mutex mutex_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  bool ringing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::agent

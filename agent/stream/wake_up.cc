#include "agent/stream/wake_up.h"

#include "grpc/support/time.h"

namespace tacho::agent {

void WakeUp::Ring() {
  absl::MutexLock lock(&mutex_);
  if (ringing_ || closed_) return;
  ringing_ = true;
  alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), tag());
}

void WakeUp::Answer() {
  absl::MutexLock lock(&mutex_);
  ringing_ = false;
}

bool WakeUp::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  return ringing_;
}

}  // namespace tacho::agent

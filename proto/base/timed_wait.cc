// A thread that Abseil blocks waits on a semaphore of its own: one futex word, which a wake-up
// raises by one. Abseil hands us the deadline as a time of day. For a wait of this unit the
// deadline on the monotonic clock is known and used instead. For others, gRPC's above all, it is
// converted once, as the wait begins: a step of the clock between their reading of it and the
// conversion, some microseconds, still counts.
#include "proto/base/timed_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

#include "absl/base/config.h"
#include "absl/base/internal/thread_identity.h"
#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"

#if ABSL_LTS_RELEASE_VERSION != 20220623 || ABSL_WAITER_MODE != ABSL_WAITER_MODE_FUTEX
#error \
    "Look how this Abseil waits. From 20230802 on, timeouts are monotonic: leave the override out."
#endif

namespace tacho {
namespace {

using absl::synchronization_internal::KernelTimeout;
using absl::synchronization_internal::Waiter;

// The deadline of this thread's wait on the monotonic clock, if the wait is one of this unit.
constinit thread_local absl::Time own_deadline = absl::InfiniteFuture();

class OwnDeadline {
 public:
  explicit OwnDeadline(absl::Time deadline) : before_(std::exchange(own_deadline, deadline)) {}
  ~OwnDeadline() { own_deadline = before_; }
  OwnDeadline(const OwnDeadline&) = delete;
  OwnDeadline& operator=(const OwnDeadline&) = delete;

 private:
  const absl::Time before_;
};

// REQUIRES: timeout.has_timeout()
timespec MonotonicDeadline(KernelTimeout timeout) {
  absl::Time deadline = own_deadline;
  if (deadline == absl::InfiniteFuture()) {
    deadline = MonotonicNow() + (absl::TimeFromTimespec(timeout.MakeAbsTimespec()) - absl::Now());
  }
  // The kernel knows no negative times.
  return absl::ToTimespec(std::max(deadline, absl::UnixEpoch()));
}

bool TakeOne(std::atomic<int32_t>* semaphore) {
  int32_t count = semaphore->load(std::memory_order_relaxed);
  while (count > 0) {
    if (semaphore->compare_exchange_weak(count, count - 1, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// Waits while the semaphore is 0, until the deadline at most; nullptr: none. False: it has passed.
bool SleepWhileZero(std::atomic<int32_t>* semaphore, const timespec* deadline) {
  return syscall(SYS_futex, reinterpret_cast<int32_t*>(semaphore),
                 FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, deadline, nullptr,
                 FUTEX_BITSET_MATCH_ANY) == 0 ||
         errno != ETIMEDOUT;
}

bool WaitOnSemaphore(std::atomic<int32_t>* semaphore, KernelTimeout timeout) {
  if (TakeOne(semaphore)) return true;
  timespec deadline = {};
  if (timeout.has_timeout()) deadline = MonotonicDeadline(timeout);
  for (;;) {
    const bool in_time = SleepWhileZero(semaphore, timeout.has_timeout() ? &deadline : nullptr);
    if (TakeOne(semaphore)) return true;
    if (!in_time) return false;
  }
}

}  // namespace

bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    mutex->Await(condition);
    return true;
  }
  for (;;) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) return condition.Eval();
    const OwnDeadline own(deadline);
    if (mutex->AwaitWithTimeout(condition, left)) return true;
  }
}

bool AwaitFor(absl::Mutex* mutex, const absl::Condition& condition, absl::Duration most) {
  return AwaitUntil(mutex, condition, MonotonicNow() + most);
}

void WaitFor(absl::CondVar* changed, absl::Mutex* mutex, absl::Duration most) {
  const OwnDeadline own(MonotonicNow() + most);
  changed->WaitWithTimeout(mutex, most);
}

bool WaitFor(const absl::Notification& notification, absl::Duration most) {
  const OwnDeadline own(MonotonicNow() + most);
  return notification.WaitForNotificationWithTimeout(most);
}

}  // namespace tacho

// Takes the place of Abseil's own, which is weak. Its semaphore is the word that Abseil's
// AbslInternalPerThreadSemPost() raises and wakes.
extern "C" __attribute__((visibility("default"))) bool ABSL_INTERNAL_C_SYMBOL(
    AbslInternalPerThreadSemWait)(absl::synchronization_internal::KernelTimeout t) {
  static_assert(sizeof(tacho::Waiter) == sizeof(std::atomic<int32_t>));
  absl::base_internal::ThreadIdentity* const identity =
      absl::synchronization_internal::GetOrCreateCurrentThreadIdentity();
  std::atomic<int>* const blocked = identity->blocked_count_ptr;
  if (blocked != nullptr) blocked->fetch_add(1, std::memory_order_relaxed);
  const bool woken = tacho::WaitOnSemaphore(
      reinterpret_cast<std::atomic<int32_t>*>(tacho::Waiter::GetWaiter(identity)), t);
  if (blocked != nullptr) blocked->fetch_sub(1, std::memory_order_relaxed);
  return woken;
}

// Waits that end after a time, whatever becomes of the wall clock meanwhile. All timed waits of
// ours are here; tests/check_sources.py refuses the others.
//
// Debian 12's Abseil (20220623) makes each of its timed waits (AwaitWithTimeout(),
// WaitWithTimeout(), WaitForNotificationWithTimeout() and their like) a futex wait until a time of
// day, so a clock set back an hour makes it an hour longer; gRPC's timers (alarms, backoff,
// keepalive) wait on an absl::CondVar and stop as long. absl::SleepFor(), the standard library's
// wait_for() and sleep_for(), its wait_until() of a steady_clock, poll() and completion queues go
// by the monotonic clock.
//
// So the source replaces the function with which Abseil blocks a thread, which is weak for that
// purpose. It serves the libraries too: in each program that links this unit, gRPC's timers go on.
// RocksDB's own timed waits are not Abseil's: the clock can delay its periodic work.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace tacho {

// Waits until the condition is true, at most this long; returns whether it is.
bool AwaitFor(absl::Mutex* mutex, const absl::Condition& condition, absl::Duration most)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

// The same until a moment of MonotonicNow().
bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

// Waits for a signal, at most this long. It may return sooner: look again at what the wait is for.
void WaitFor(absl::CondVar* changed, absl::Mutex* mutex, absl::Duration most)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

// Waits for the notification, at most this long; returns whether it has come.
bool WaitFor(const absl::Notification& notification, absl::Duration most);

}  // namespace tacho

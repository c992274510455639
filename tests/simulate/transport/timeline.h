// Steps that are due at moments, for the one thread that runs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::simulate {

// The clock of all networks, which differs from MonotonicNow() where each simulated host has a
// clock of its own.
using NetworkClock = absl::Time();
inline constinit NetworkClock* network_clock = &MonotonicNow;
inline absl::Time NetworkNow() { return network_clock(); }

// All of it needs the network's mutex, and so do the steps, which run under it. Times are
// NetworkNow()'s.
class Timeline {
 public:
  // Steps that are due at the same moment run in the order in which they came.
  void At(absl::Time when, std::function<void()> step) {
    if (closed_) return;
    steps_.emplace(std::pair(when, ++last_), std::move(step));
    Wake();
  }
  // Drops all steps, and those that come later. Nobody may be in Await().
  void Close() {
    closed_ = true;
    // What they hold may hold this.
    const auto dropped = std::exchange(steps_, {});
  }
  // Makes Await() look again.
  void Wake() { changed_.Signal(); }

  // Runs what is due until `ready`, or until a moment of MonotonicNow(); returns whether it is
  // ready. `mutex` is the network's, and is free while this waits.
  bool Await(absl::Mutex* mutex, absl::Time until, absl::FunctionRef<bool()> ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (until != absl::InfiniteFuture()) until = NetworkNow() + (until - MonotonicNow());
    for (;;) {
      RunDue();
      if (ready()) return true;
      const absl::Time now = NetworkNow();
      if (now >= until) return false;
      const absl::Time next = steps_.empty() ? until : std::min(until, steps_.begin()->first.first);
      if (next > now) WaitFor(&changed_, mutex, next - now);
    }
  }

 private:
  void RunDue() {
    while (!steps_.empty() && steps_.begin()->first.first <= NetworkNow()) {
      const std::function<void()> step = std::move(steps_.begin()->second);
      steps_.erase(steps_.begin());
      step();
    }
  }

  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> steps_;
  uint64_t last_ = 0;
  bool closed_ = false;
  absl::CondVar changed_;
};

}  // namespace tacho::simulate

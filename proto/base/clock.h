// The clock that nobody sets, and how to bear with the one that people do.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tacho {

// For pauses and deadlines: it never jumps, whatever becomes of the machine's time of day. Only
// differences mean something.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Whether it is time for what is due at most `interval` after it was planned, on a clock that
// people may set. Due later than that means that the clock was set back: it is not waited for.
inline bool HasCome(absl::Time due, absl::Time now, absl::Duration interval) {
  return now >= due || due - now > interval;
}

}  // namespace tacho

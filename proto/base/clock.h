// The clock that nobody sets.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tacho {

// For pauses and deadlines: it never jumps, whatever becomes of the machine's time of day. Only
// differences mean something.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tacho

// Time for pauses and deadlines: it never jumps, so setting the machine's clock moves none of them.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tacho::agent {

// Only differences mean something.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tacho::agent

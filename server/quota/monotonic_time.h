#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tacho::server {

// A clock that nobody sets. Not the time of day.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tacho::server

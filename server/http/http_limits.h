// What the HTTP port takes at once.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace tacho::server::http {

// Past each bound the connection that has waited longest for its client makes room; where none
// waits, the new one is answered with 503.
struct HttpLimits {
  size_t connections = 512;
  size_t per_address = 128;                    // As NetworkOf() tells them apart.
  size_t unsent_bytes = size_t{64} << 20;      // Of all answers that clients have not taken yet.
  absl::Duration request = absl::Seconds(10);  // From the connection to the end of the head.
  absl::Duration answer = absl::Seconds(60);   // Until the client has taken all of it.
  size_t threads = 4;                          // Requests at work at once.
};

}  // namespace tacho::server::http

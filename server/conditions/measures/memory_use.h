// Memory of hosts and chips as one kind of thing: what is used of what there is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct MemoryPoint {
  int64_t time_ns = 0;
  double used = 0;  // Bytes.
};

// Of one host, or of one chip.
struct MemoryUse {
  std::string host;
  std::string chip;                 // Empty: the host's own.
  std::string metric;               // That the points are of.
  double total = 0;                 // Bytes, > 0; the newest.
  std::vector<MemoryPoint> points;  // Finite, ascending by time, from `since_ns` on.

  std::string Name() const;  // "host h", "chip 3 of h"
};

// Of every host and chip of the window that records both; used memory of a host is total less
// available (the kernel's MemAvailable, in which caches that can be dropped count as free).
std::vector<MemoryUse> MemoryUses(const JobWindow& window, int64_t since_ns);

}  // namespace tacho::server::conditions

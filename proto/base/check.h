// What must be true of our own code, whatever the world does. A broken check ends the process, also
// in a release: going on would store or answer something wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tacho::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tacho::internal

// For what costs O(1) and nobody else has checked. Never for what comes from a disk, a network, a
// clock or a user: that is an error with a status.
#define TACHO_CHECK(condition) \
  ((condition) ? void() : ::tacho::internal::CheckFailed(__FILE__, __LINE__, #condition))

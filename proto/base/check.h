// What must be true of our own code, whatever the world does. A broken check ends the process, also
// in a release: going on would store or answer something wrong.
//
// A recorder lives in somebody else's process, which recording must never end. What a trainer runs
// (client/, client/ring/ring_writer.h) uses TACHO_CHECK only where memory would be corrupted
// otherwise, and TACHO_DCHECK for everything else.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tacho::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tacho::internal

// For conditions that cost O(1) and that nobody else has checked. Never for input from a disk, a
// network, a clock or a user: that is an error with a status.
#define TACHO_CHECK(condition) \
  ((condition) ? void() : ::tacho::internal::CheckFailed(__FILE__, __LINE__, #condition))

// The same, but only without NDEBUG: in the presets that test, and in no release.
#ifdef NDEBUG
#define TACHO_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define TACHO_DCHECK(condition) TACHO_CHECK(condition)
#endif

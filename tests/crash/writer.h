// The process that the crash campaign kills: opens a store, reports what it holds, then writes to
// it until it is killed, kills itself at a named point, or has written enough and closes.
#pragma once

#include <cstdint>
#include <string>

namespace tacho::crash {

struct WriterOptions {
  std::string dir;    // Of the store.
  uint64_t seed = 0;  // The plan's: the same as long as the store lives.
  uint64_t life = 0;  // Varies what is done when.
  std::string point;  // Kills itself there (storage/db/crash_point.h), at the hit-th time.
  uint64_t hit = 1;
  bool retention = false;    // Days are dropped.
  bool full = false;         // The disk is, for a while.
  uint64_t close_after = 0;  // Messages, then it closes; 0: never.
  // With acknowledgements that wait for a bucket: the endpoint of a FakeObjectStore, and the
  // store's place there. Empty: without.
  std::string endpoint;
  std::string url;
};

// Reports to `fd` (wire.h). Returns the process's exit status.
int RunWriter(const WriterOptions& options, int fd);

}  // namespace tacho::crash

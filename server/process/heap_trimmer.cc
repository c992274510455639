#include "server/process/heap_trimmer.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "proto/base/background_thread.h"

namespace tacho::server::process {
namespace {

// Resident memory that no allocation accounts for. The C library's own count of free bytes does not
// tell those that have been given back from those that have not.
size_t UnusedBytes(size_t used) {
  size_t total_pages = 0;
  size_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  const size_t resident = resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return resident > used ? resident - used : 0;
}

size_t UsedBytes() {
  const struct mallinfo2 info = mallinfo2();  // Over all arenas.
  return info.uordblks + info.hblkhd;
}

}  // namespace

HeapTrimmer::HeapTrimmer(Options options) : options_(options), thread_([this] { Run(); }) {}

HeapTrimmer::~HeapTrimmer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void HeapTrimmer::Run() {
  BecomeBackgroundThread("heap trimmer");
  // Code, stacks and what a trim cannot free: only what comes on top is worth another.
  size_t unavoidable = 0;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.round)) return;
    }
    const size_t used = UsedBytes();
    const size_t unused = UnusedBytes(used);
    unavoidable = std::min(unavoidable, unused);
    if (unused - unavoidable < std::max(options_.min_unused_bytes, used / 8)) continue;
    malloc_trim(0);
    unavoidable = UnusedBytes(UsedBytes());
  }
}

}  // namespace tacho::server::process

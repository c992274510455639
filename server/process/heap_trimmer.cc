#include "server/process/heap_trimmer.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

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

HeapTrimmer::HeapTrimmer(Options options) : options_(options) {
  thread_.Start("heap trimmer", RepeatingThread::Priority::kBackground, options.round,
                [this] { Look(); });
}

void HeapTrimmer::Look() {
  const size_t used = UsedBytes();
  const size_t unused = UnusedBytes(used);
  unavoidable_ = std::min(unavoidable_, unused);
  if (unused - unavoidable_ < std::max(options_.min_unused_bytes, used / 8)) return;
  malloc_trim(0);
  unavoidable_ = UnusedBytes(UsedBytes());
}

}  // namespace tacho::server::process

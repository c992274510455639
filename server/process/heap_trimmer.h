// Gives memory that is allocated no more back to the system.
//
// A burst of registrations or of batches leaves free pages in the heaps of the threads that took
// part, which the C library keeps for them: a third of the resident memory at a million series.
#pragma once

#include <cstddef>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::process {

// Looks every `round` how much resident memory is in no allocation, on a thread of its own, and
// trims the heap if that has grown by `min_unused_bytes` and by an eighth of what is in use.
class HeapTrimmer {
 public:
  struct Options {
    absl::Duration round = absl::Seconds(5);
    size_t min_unused_bytes = size_t{32} << 20;
  };
  explicit HeapTrimmer(Options options);
  ~HeapTrimmer();

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::process

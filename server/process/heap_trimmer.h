// Gives freed memory back to the system.
//
// A burst of registrations or of batches leaves free pages in the heaps of its threads, and the C
// library keeps them: a third of the resident memory at a million series.
#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "proto/base/background_thread.h"

namespace tacho::server::process {

// Every `round`, on a thread of its own, compares resident memory with what is allocated, and trims
// the heap if the difference has grown by `min_unused_bytes` and by an eighth of what is in use.
class HeapTrimmer {
 public:
  struct Options {
    absl::Duration round = absl::Seconds(5);
    size_t min_unused_bytes = size_t{32} << 20;
  };
  explicit HeapTrimmer(Options options);

 private:
  void Look();

  const Options options_;
  // A trim cannot free this much, such as code and stacks. Only growth beyond it is worth another.
  size_t unavoidable_ = 0;
  RepeatingThread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::process

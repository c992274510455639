// Wakes streams that have something to tell, at most once a tick each: the committer's callbacks
// only leave a note here, so that acknowledging costs the disk's thread nothing, and what becomes
// durable within a tick is told in one Ack.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::ingest {

class Paced {
 public:
  virtual ~Paced() = default;
  // On the pacer's thread.
  virtual void OnTick() = 0;
};

// Thread-safe. A tick begins with the first Schedule() after the end of the one before, so that a
// single message is acknowledged at once.
class AckPacer {
 public:
  explicit AckPacer(absl::Duration tick);
  ~AckPacer();  // What is scheduled is dropped.

  void Schedule(std::shared_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Streams = std::vector<std::shared_ptr<Paced>>;

  void Run();
  // Waits until something is scheduled and takes it; empty when stopping.
  Streams Take() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration tick_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Streams scheduled_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::ingest

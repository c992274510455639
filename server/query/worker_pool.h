// Threads on which queries run, so that no query holds one of gRPC's.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::query {

// Thread-safe. Threads are made when first needed and kept, at most `max_threads` at work for
// Run(). Nothing queues: work either has a thread at once or is refused.
class WorkerPool {
 public:
  explicit WorkerPool(uint32_t max_threads);
  ~WorkerPool();

  enum class Admission { kAccepted, kFull, kClosed };
  Admission Run(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // For what makes other work faster: true if a thread runs it, one beside the `max_threads`, so
  // that no work is refused for it. Refused itself if half as many threads are at work.
  bool RunSpare(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // For work that comes from now on; what is running goes on.
  void SetMaxThreads(uint32_t max_threads) ABSL_LOCKS_EXCLUDED(mutex_);

  // Work that is running or about to.
  uint32_t active() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses further work, waits for what is running, joins the threads. May be called again, and
  // from several threads.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work {
    std::function<void()> run;
    bool spare = false;
  };

  void Start(Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool WorkOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || !waiting_.empty();
  }

  mutable absl::Mutex mutex_;
  uint32_t max_threads_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t active_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t spare_ ABSL_GUARDED_BY(mutex_) = 0;         // Of them, from RunSpare().
  std::vector<Work> waiting_ ABSL_GUARDED_BY(mutex_);  // Fewer than idle threads.
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::query

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

  // For work that answers a client: gives the work's place among `max_threads` away, after which
  // it may only do what never waits. Call it before the client can see the end of the answer, or
  // the client's next call may find the place still taken. From any thread while the work runs;
  // once is enough.
  using Leave = std::function<void()>;
  Admission RunAnswer(std::function<void(const Leave&)> work) ABSL_LOCKS_EXCLUDED(mutex_);

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
    std::function<void(const Leave&)> run;
    bool spare = false;
  };

  void Start(Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs it to its end; the thread is then free.
  void Do(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WorkOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || !waiting_.empty();
  }

  mutable absl::Mutex mutex_;
  uint32_t max_threads_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t active_ ABSL_GUARDED_BY(mutex_) = 0;   // Work that has a place.
  uint32_t leaving_ ABSL_GUARDED_BY(mutex_) = 0;  // Work that has given it away and still runs.
  uint32_t spare_ ABSL_GUARDED_BY(mutex_) = 0;    // The part of active_ that came from RunSpare().
  std::vector<Work> waiting_ ABSL_GUARDED_BY(mutex_);  // Fewer than idle threads.
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::query

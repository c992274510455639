// A thread for the layouts that define many series, so that whoever defines a million of them keeps
// nobody waiting: rows of known layouts never come here, gRPC's few threads are not held, and all
// definers together get a share of one processor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/edge/token_bucket.h"

namespace tacho::server::ingest {

// Thread-safe.
class DefinitionQueue {
 public:
  // A layout's message of at most so many bytes need not queue: some hundred series.
  static constexpr size_t kSmallBytes = size_t{64} << 10;
  // Unless all agents together define more than this, in series.
  static constexpr edge::Rate kAtOnce = {.per_second = 20'000, .burst_ns = 1'000'000'000};
  // The share of the time in which the thread works at most; it sleeps for the rest.
  static constexpr double kShare = 0.5;

  DefinitionQueue();
  // Leaves undone what is queued.
  ~DefinitionQueue();

  // Whether a layout's message of so many bytes is to be queued.
  bool IsFor(size_t bytes) const;
  // Counts series that were defined at once; those that this thread defines do not count.
  void Defined(uint64_t series);

  // Calls `work` on the thread, before work of others that owe more: those who have defined least
  // go first.
  void Add(int64_t debt, std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // For work that takes long, to be called now and then with no lock held: sleeps so that the
  // thread keeps to its share. Does nothing on other threads.
  void Pause() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsThread() const { return std::this_thread::get_id() == thread_.get_id(); }

  edge::TokenBucket at_once_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<int64_t, std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);  // By debt.
  absl::Time working_since_;                                                     // The thread's.
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::ingest

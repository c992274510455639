// The threads that send a log's segments. Each sends one at a time and waits for the answer, so as
// many are under way as there are threads.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/shard/shard_log.h"

namespace tacho::storage {

// Start and end it on one thread.
class SegmentSenders {
 public:
  struct Options {
    size_t threads = 4;  // No more than the log's window has use for.
    // After a request without a known outcome a thread waits, each time twice as long. How long
    // decides only how much is asked of a bucket that is in trouble.
    absl::Duration first_pause = absl::Milliseconds(100);
    absl::Duration longest_pause = absl::Seconds(5);
    // Called on a sender's thread after each request that was stored, or that fenced the owner:
    // look at stored() and fenced(). Several threads may call it at once. May be null.
    std::function<void()> on_progress;
  };

  // `log` must outlive this. It is closed when this ends.
  SegmentSenders(ShardLog* log, Options options);
  ~SegmentSenders() { Stop(); }
  SegmentSenders(const SegmentSenders&) = delete;
  SegmentSenders& operator=(const SegmentSenders&) = delete;

  // Waits for the requests that are under way; sends no more. What is not stored then is not
  // acknowledged, and comes again from the agents. May be called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Send() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsStoppedWithin(absl::Duration pause) ABSL_LOCKS_EXCLUDED(mutex_);

  ShardLog* const log_;
  const Options options_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tacho::storage

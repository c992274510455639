// Wakes streams at a time: when a pause is over, when Hello is overdue.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/ingest/ack_pacer.h"

namespace tacho::server::ingest {

// Thread-safe. Times are MonotonicNow()'s.
class WakeTimer {
 public:
  WakeTimer();
  ~WakeTimer();  // Those who wait are forgotten.

  // Calls stream->OnTick() on the timer's thread, within 10 ms after `when`, unless it has gone.
  void At(absl::Time when, std::weak_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    absl::Time when;
    std::weak_ptr<Paced> stream;
    bool operator<(const Entry& other) const { return when > other.when; }  // The soonest on top.
  };

  void Run();
  // Waits for the next; those due. Empty when stopping.
  std::vector<std::weak_ptr<Paced>> TakeDue() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::priority_queue<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::ingest

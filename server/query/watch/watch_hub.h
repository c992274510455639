// All watches of the collector. While one tells what was stored it has a worker thread; afterwards
// none of its own: one thread passes on, for all of them, what is committed.
//
//   worker  Begin(): subscription and view -> history -> "live" ─┐
//   pump    subscription -> changes -> backlog: waits for history ┴-> stream
//
// What waits for a slow client is bounded; past that the watch ends. The stream's queue (256 KiB)
// and the backlog (4 MiB) are its own, the changes and the subscription's buffer (16 MiB each) it
// shares with the other watches of its job.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/query/watch/watch_rows.h"
#include "server/query/watch/watch_stream.h"
#include "storage/store.h"

namespace tacho::server::query {

// Wakes the pump. Thread-safe; outlives it in the hands of those who may still call.
class WatchBell {
 public:
  void Ring() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    rung_ = true;
  }
  // Until it has rung since the last Wait(), at most so long.
  void Wait(absl::Duration most) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&rung_), most);
    rung_ = false;
  }

 private:
  absl::Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
};

struct WatchHubOptions {
  const storage::Store* store = nullptr;  // Not owned; must outlive the hub.
  std::function<absl::Time()> now = absl::Now;
  // A watch that had nothing to say for so long says that it is alive.
  absl::Duration alive_after = absl::Seconds(15);
  std::function<void(uint64_t)> on_samples;  // So many were sent, after history.
};

// Thread-safe.
class WatchHub {
 public:
  explicit WatchHub(WatchHubOptions options);
  ~WatchHub() { Close(); }

  // To be rung by what changes a stream.
  const std::shared_ptr<WatchBell>& bell() const { return bell_; }

  // On a worker's thread: sends history, then hands the stream over. Ends the stream if that fails.
  // `recheck` is asked every few seconds whether the caller may go on; null: it always may.
  void Begin(const WatchPlan& plan, std::function<absl::Status()> recheck,
             const std::shared_ptr<WatchStream>& stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all watches with UNAVAILABLE, and those that are still to begin.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Watch;
  using WatchPtr = std::shared_ptr<Watch>;
  struct GoneLive {
    WatchPtr watch;
    SeriesNumbers numbers;
  };

  absl::Status SendHistoryOf(const WatchPlan& plan, const WatchPtr& watch)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Follow(WatchPtr watch) ABSL_LOCKS_EXCLUDED(mutex_);

  // The pump.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over what workers have handed in; returns whether the hub is being closed.
  bool TakeIn() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(Watch* watch);
  absl::Status Recheck(Watch* watch) const;
  void SayAlive(Watch* watch) const;
  // Takes what was committed, and moves of it into the backlog what that has room for.
  absl::Status Collect(Watch* watch);
  // Sends from the backlog what there is room for; false if there is no more.
  absl::StatusOr<bool> Send(Watch* watch);
  // Forgets the watches that ended, and cuts off clients that do not take their last message.
  void Clear();

  const WatchHubOptions options_;
  const std::shared_ptr<WatchBell> bell_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<WatchPtr> followed_ ABSL_GUARDED_BY(mutex_);
  std::vector<GoneLive> gone_live_ ABSL_GUARDED_BY(mutex_);
  std::vector<WatchPtr> watches_;  // The pump's.
  struct Ending {
    std::shared_ptr<WatchStream> stream;
    absl::Time cut_off;
  };
  std::vector<Ending> ending_;                // The pump's.
  std::thread pump_ ABSL_GUARDED_BY(mutex_);  // Made for the first watch.
};

}  // namespace tacho::server::query

// All watches of the collector. A watch has a worker thread while it sends what was stored. After
// that it has none: one thread passes on to all of them what is committed.
//
//   worker  Begin(): subscription and view -> history -> "live" ─┐
//   pump    subscription -> changes -> backlog: waits for history ┴-> stream
//
// The queue for a slow client is bounded; beyond that the watch ends. Each watch has a queue in
// its stream (256 KiB) and a backlog (4 MiB) of its own. It shares the changes and the
// subscription's buffer (16 MiB each) with the other watches of its job.
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
#include "proto/base/timed_wait.h"
#include "server/query/watch/watch_rows.h"
#include "server/query/watch/watch_stream.h"
#include "storage/store.h"

namespace tacho::server::query {

// Wakes the pump. Thread-safe; callers that may still ring keep it alive after the pump.
class WatchBell {
 public:
  void Ring() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    rung_ = true;
  }
  // Waits until it has rung since the last Wait(), at most this long.
  void Wait(absl::Duration most) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    AwaitFor(&mutex_, absl::Condition(&rung_), most);
    rung_ = false;
  }

 private:
  absl::Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
};

struct WatchHubOptions {
  const storage::Store* store = nullptr;  // Not owned; must outlive the hub.
  std::function<absl::Time()> now = absl::Now;
  // After this long without another message a watch sends `alive`.
  absl::Duration alive_after = absl::Seconds(15);
  std::function<void(uint64_t)>
      on_samples;  // Called with the number of samples sent after history.
};

// Thread-safe.
class WatchHub {
 public:
  explicit WatchHub(WatchHubOptions options);
  ~WatchHub() { Close(); }

  // Whatever changes a stream rings it.
  const std::shared_ptr<WatchBell>& bell() const { return bell_; }

  // On a worker's thread: sends history, then hands the stream over. Ends the stream if that fails.
  // `recheck` is called every few seconds and says whether the caller may go on; null: it may.
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
  // Takes what was committed, and moves as much of it into the backlog as that has room for.
  absl::Status Collect(Watch* watch);
  // Sends as much of the backlog as the stream has room for; false if it has no more.
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

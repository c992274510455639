// All WatchConditions calls. One thread, started for the first, sends each what changed on the
// board.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/conditions/condition_board.h"
#include "server/query/lists/conditions_query.h"
#include "server/query/watch/watch_hub.h"
#include "server/query/watch/watch_stream.h"

namespace tacho::server::query {

struct ConditionWatchesOptions {
  conditions::ConditionBoard* board =
      nullptr;  // Not owned; must outlive the watches. Its listener is theirs.
  std::function<absl::Time()> now = absl::Now;
  absl::Duration alive_after = absl::Seconds(15);
};

// Thread-safe.
class ConditionWatches {
 public:
  explicit ConditionWatches(ConditionWatchesOptions options);
  ~ConditionWatches();

  // Whatever changes a stream rings it.
  const std::shared_ptr<WatchBell>& bell() const { return bell_; }

  // Sends the conditions of the jobs that `rights` include, then each change. A client that falls
  // further behind than the board remembers, or takes nothing while its stream's queue is full,
  // gets RESOURCE_EXHAUSTED. `recheck` is called every few seconds and says whether the caller may
  // go on; null: it always may.
  void Begin(ConditionFilter filter, security::RightsPtr rights,
             std::function<absl::Status()> recheck, std::shared_ptr<ConditionWatchStream> stream)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all watches with UNAVAILABLE, and those that are still to begin.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Watch;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Serve(Watch* watch) const;
  absl::Status TakeNews(Watch* watch) const;
  void Send(Watch* watch) const;
  // Forgets the watches that ended, and cuts off clients that do not take their last message.
  void Clear(std::vector<std::unique_ptr<Watch>>* watches) const;

  const ConditionWatchesOptions options_;
  const std::shared_ptr<WatchBell> bell_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Watch>> begun_ ABSL_GUARDED_BY(mutex_);
  std::thread pump_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::query

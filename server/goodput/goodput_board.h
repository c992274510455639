// The newest ledger of every live job, for the metrics page. A background thread makes each ledger
// again and again, always from all that the store holds, so that late rows, imports and a restart
// of the collector lead to the same figures.
//
// The cost is bounded: the thread rests after each job for long enough to stay within `share` of
// its time. Making a ledger takes time that grows with the steps of the job. With many or long jobs
// the figures are renewed less often, as tacho_goodput_oldest_seconds shows.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/conditions/window/signal_names.h"
#include "server/goodput/job_goodput.h"
#include "server/process/reloadable.h"
#include "storage/store.h"

namespace tacho::server::goodput {

struct GoodputBoardOptions {
  const storage::Store* store = nullptr;  // Not owned; must outlive the board.
  std::function<absl::Time()> now = absl::Now;
  // Which metric means what, at the start. Null: the default names.
  std::shared_ptr<const conditions::SignalNames> signals;
  AgentReports reports;                         // May be null.
  absl::Duration interval = absl::Seconds(10);  // No ledger is made more often.
  // A job without newer rows gets a new ledger after this long, for rows that came late.
  absl::Duration idle_interval = absl::Minutes(2);
  absl::Duration linger = absl::Hours(1);  // Jobs leave this long after their newest row.
  size_t max_jobs = 1000;                  // Those with the newest rows.
  double share = 0.1;                      // The part of the thread's time that it may use.
  bool background = true;                  // Tests switch it off and call Refresh().
};

// A ledger as it is now, and for counters.
struct BoardGoodput : JobGoodput {
  // The highest values of AmountsAsTheyCame() and of the wall time while the job was on the board.
  // Late rows move some time to another bucket; rate() takes a counter that falls for one that
  // began anew, and would count all of it once more.
  std::array<int64_t, kGoodputBuckets> most_ns = {};
  int64_t most_wall_ns = 0;
};

struct GoodputBoardStats {
  size_t jobs = 0;           // With a ledger.
  size_t jobs_left_out = 0;  // More than max_jobs, at the last look.
  uint64_t made = 0;         // Ledgers, ever.
  uint64_t failed = 0;
  double seconds = 0;         // Spent on them.
  double oldest_seconds = 0;  // Age of the oldest ledger.
};

// Thread-safe. Reloads `conditions.signals`: all ledgers are made again with the new names.
class GoodputBoard final : public process::Reloadable {
 public:
  explicit GoodputBoard(GoodputBoardOptions options);
  ~GoodputBoard() override;  // Stops.

  // Gives up the ledger in the making and waits for that. The store is not read after this.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // By name of the job. Jobs that have recorded neither a step nor a phase are left out.
  std::vector<std::shared_ptr<const BoardGoodput>> Newest() const ABSL_LOCKS_EXCLUDED(mutex_);
  GoodputBoardStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes what is due, once. Without rests if there is no background thread.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::shared_ptr<const BoardGoodput> goodput;  // Null: not to be shown.
    absl::Time made;
    int64_t last_row_ns = 0;
    uint64_t signals = 0;  // signals_changed_ when it was made.
  };

  void Run();
  std::vector<storage::JobSummary> LiveJobs(absl::Time now, size_t* left_out) const;
  bool IsDue(const storage::JobSummary& job, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Make(const storage::JobSummary& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether to go on.
  bool Rest(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  const GoodputBoardOptions options_;
  std::atomic<bool> stopping_ = false;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const conditions::SignalNames> signals_ ABSL_GUARDED_BY(mutex_);
  uint64_t signals_changed_ ABSL_GUARDED_BY(mutex_) = 0;  // How often.
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  GoodputBoardStats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tacho::server::goodput

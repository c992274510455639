// The newest ledger of every live job, for the metrics page: JobRounds of ledgers. Making one takes
// time that grows with the steps of the job; tacho_goodput_oldest_seconds shows how old they get.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/conditions/window/signal_names.h"
#include "server/goodput/job_goodput.h"
#include "server/goodput/job_rounds.h"
#include "server/process/reloadable.h"

namespace tacho::server::goodput {

struct GoodputBoardOptions : JobRoundsOptions {
  // Which metric means what, at the start. Null: the default names.
  std::shared_ptr<const conditions::SignalNames> signals;
  AgentReports reports;  // May be null.
};

// A ledger as it is now, and for counters.
struct BoardGoodput : JobGoodput {
  // The highest values of AmountsAsTheyCame() and of the wall time while the job was on the board.
  // Late rows move some time to another bucket; rate() takes a counter that falls for one that
  // began anew, and would count all of it once more.
  std::array<int64_t, kGoodputBuckets> most_ns = {};
  int64_t most_wall_ns = 0;
};

// Thread-safe. Reloads `conditions.signals`: all ledgers are made again with the new names.
class GoodputBoard final : public process::Reloadable {
 public:
  explicit GoodputBoard(GoodputBoardOptions options);

  void Stop() { rounds_.Stop(); }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // By name of the job. Jobs that have recorded neither a step nor a phase are left out.
  std::vector<std::shared_ptr<const BoardGoodput>> Newest() const {
    return rounds_.Newest<BoardGoodput>();
  }
  JobRoundsStats Stats() const { return rounds_.Stats(); }
  void Refresh() { rounds_.Refresh(); }

 private:
  absl::StatusOr<JobRounds::Figures> Make(const std::string& job, const JobRounds::Figures& before,
                                          const std::atomic<bool>& stopping)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const GoodputBoardOptions options_;
  absl::Mutex mutex_;
  std::shared_ptr<const conditions::SignalNames> signals_ ABSL_GUARDED_BY(mutex_);
  JobRounds rounds_;  // Last: its thread uses the others.
};

}  // namespace tacho::server::goodput

// All jobs as View.Fleet shows them, made from what the other parts hold in memory, with a revision
// for each so that a reader gets only what has changed.
//
// Nothing is done while nobody asks. A look goes over the summaries of all jobs and makes rows
// again where something is new: at once if a job's state, attempts, series, attributes or events,
// or the status of a condition changed; at most every `move_every` if it has only moved on, with
// newer rows, higher steps or new figures. Otherwise every running job would be new each time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/conditions/condition_board.h"
#include "server/goodput/goodput_board.h"
#include "server/limits/job_refusals.h"
#include "server/query/read/host_part.h"
#include "server/query/read/query_control.h"
#include "server/view/fleet_chips.h"
#include "server/view/fleet_row.h"
#include "storage/store.h"

namespace tacho::server::view {

// Not owned; all must outlive the board. Only `store` is required.
struct FleetBoardOptions {
  const storage::Store* store = nullptr;
  const conditions::ConditionBoard* conditions = nullptr;
  const goodput::GoodputBoard* goodput = nullptr;
  const limits::JobRefusals* job_refusals = nullptr;
  std::function<bool(absl::string_view job)> shows;  // Leaves jobs out; null: none.
  query::OwnPart own_part = nullptr;                 // As QueryServiceOptions has it.
  std::function<absl::Time()> now = absl::Now;
  absl::Duration look_every = absl::Seconds(1);   // Between, everybody gets the same.
  absl::Duration move_every = absl::Seconds(10);  // As above.
  // Memory and time of a look: the jobs with the newest activity.
  size_t max_jobs = 10'000;
};

// Immutable.
struct Fleet {
  uint64_t revision = 0;
  std::vector<FleetRowPtr> rows;       // As ComesBefore() orders them.
  FleetHosts hosts;                    // As FleetChips::Hosts() has them.
  std::optional<uint32_t> chips_idle;  // Nullopt: there is no job "hosts" with chips.
};
using FleetPtr = std::shared_ptr<const Fleet>;

// Thread-safe.
class FleetBoard {
 public:
  explicit FleetBoard(FleetBoardOptions options);

  // The fleet as it is now.
  //   as Store::Outline(), query::StateOfJob(), and control.Check().
  absl::StatusOr<FleetPtr> Look(const query::QueryControl& control) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    storage::JobSummary summary;  // When the row was made.
    FleetRowPtr row;
    absl::Time facts_at;             // When the disk or the index was last asked.
    absl::Time moved_at;             // When the row was last made.
    bool judged_anew = true;         // A condition has changed.
    uint64_t counted_series = 0;     // The job had so many when its own chips were counted.
    uint32_t own_chips = 0;          // From the job's own series.
    uint64_t chips_version = 0;      // FleetChips' of the row.
    std::vector<std::string> hosts;  // Only a running job has some.
  };

  absl::Status LookAgain(absl::Time now, const query::QueryControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those that are shown, in no order.
  std::vector<storage::JobSummary> NewestJobs(absl::Time now) const;
  void TakeChangedConditions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeGoodput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether there were others.
  bool ForgetAllBut(const std::vector<storage::JobSummary>& jobs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the row has changed.
  absl::StatusOr<bool> Renew(const storage::JobSummary& job, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FactsAreOld(const Entry& entry, const storage::JobSummary& job, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasMoved(const Entry& entry, const storage::JobSummary& job, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets what needs the index or the disk. NOT_FOUND: the job has expired.
  absl::Status TakeFacts(const storage::JobSummary& job, absl::Time now, Entry* entry,
                         FleetRow* row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeChips(const storage::JobOutline& outline, const storage::JobSummary& job,
                         Entry* entry, FleetRow* row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const goodput::BoardGoodput> GoodputOf(const std::string& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FleetBoardOptions options_;
  // Held during a look, which reads the store: whoever comes meanwhile waits for its answer instead
  // of doing the same work.
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<const goodput::BoardGoodput>> goodput_
      ABSL_GUARDED_BY(mutex_);
  FleetChips chips_ ABSL_GUARDED_BY(mutex_);
  uint64_t conditions_position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t idle_version_ ABSL_GUARDED_BY(mutex_) = 0;  // chips_.version() of what was published.
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool changed_ ABSL_GUARDED_BY(mutex_) = true;  // Since what was published.
  uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 1;
  FleetPtr fleet_ ABSL_GUARDED_BY(mutex_);  // Null before the first look.
};

}  // namespace tacho::server::view

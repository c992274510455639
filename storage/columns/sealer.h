// Turns open rows into columns, in the background and in bounded steps, and keeps what is open
// within its bounds: of age, of memory, of the journal's length.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/columns/column_cache.h"
#include "storage/db/crash_point.h"
#include "storage/db/database.h"
#include "storage/head/head.h"
#include "storage/index/job_table.h"
#include "storage/model/stats.h"

namespace tacho::storage {

// Thread-safe but for Start() and Stop().
class Sealer {
 public:
  struct Options {
    size_t seal_rows = 0;
    absl::Duration seal_age;
    uint64_t open_bytes = 0;      // As in StoreOptions,
    uint64_t open_raw_bytes = 0;  // both.
    // Journal positions before this are to be sealed, so that the journal becomes shorter.
    std::function<uint64_t()> positions_before;
    std::function<absl::Time()> now;
    std::function<void(absl::string_view)> log;  // May be null.
    // Called after each round on the sealer's thread: trims the journal, drops old days.
    std::function<void()> after_round;
    // Called with the frames that a write has made.
    std::function<void(const std::vector<FrameRef>&)> on_sealed;
    AtPoint at_point;
  };
  // All not owned; they must outlive the sealer.
  Sealer(const Database* database, ColumnCache* columns, Head* head, JobTable* jobs,
         Options options);
  ~Sealer();

  void Start();
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Seals every open row.
  //   UNAVAILABLE  the disk refused; the rows are still open. So also below.
  absl::Status SealAll() ABSL_LOCKS_EXCLUDED(sealing_);
  // Seals what is due by length, by age, or for the journal's sake, and brings memory within its
  // bounds.
  absl::Status SealDue() ABSL_LOCKS_EXCLUDED(sealing_);
  // Brings memory within its bounds if it is beyond them.
  absl::Status RelieveMemory() ABSL_LOCKS_EXCLUDED(sealing_);

  // Calls it while nothing is sealed.
  void BetweenRounds(absl::FunctionRef<void()> work) ABSL_LOCKS_EXCLUDED(sealing_);

  void FillStats(StoreStats* stats) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Seals for as long as there is a need.
  absl::Status Seal(const Head::SealingNeed& need) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sealing_);
  // Seals the layouts of the most bytes, among those of at least `min_rows`, until open rows take
  // no more than `bytes`.
  absl::Status SealDownTo(uint64_t bytes, size_t min_rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sealing_);
  absl::Status Relieve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sealing_);
  // Seals one portion; false if there was nothing to be sealed.
  absl::StatusOr<bool> SealSome(const Head::SealingNeed& need)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sealing_);
  absl::Status Write(const std::vector<Head::Sealing>& taken);

  const Database* const database_;
  ColumnCache* const columns_;
  Head* const head_;
  JobTable* const jobs_;
  const Options options_;

  absl::Mutex sealing_;  // One round at a time. Taken before mutex_.
  mutable absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t rows_sealed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t columns_sealed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t column_bytes_sealed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace tacho::storage

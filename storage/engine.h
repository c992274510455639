// The parts of a store and how they work together: what Store (store.h) leaves to its threads.
//
//   store.cc           opening, writing, closing, figures
//   store_read.cc      jobs, series, views, latest values, events, subscriptions
//   engine.cc          how the parts are joined; how much may wait in memory and in the journal
//   engine_shared.cc   acknowledgements that wait for the bucket
//   engine_recover.cc  from what the disk holds to what is in memory
//   engine_upkeep.cc   sealing, trimming, retention, idle jobs
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/background_thread.h"
#include "storage/agent_owners.h"
#include "storage/change_feed.h"
#include "storage/columns/column_cache.h"
#include "storage/columns/frame_merger.h"
#include "storage/columns/sealer.h"
#include "storage/committer.h"
#include "storage/db/commit_mark.h"
#include "storage/db/database.h"
#include "storage/db/kept_writes.h"
#include "storage/head/head.h"
#include "storage/history_keeper.h"
#include "storage/index/events.h"
#include "storage/index/job_table.h"
#include "storage/index/series_index.h"
#include "storage/journal/journal.h"
#include "storage/late_rows.h"
#include "storage/options.h"
#include "storage/retention_pace.h"
#include "storage/shared_opening.h"

namespace rocksdb {
class WriteBatch;
}

namespace tacho::storage {

// Under which events are kept that belong to no job.
inline constexpr JobId kNoJob = 0;

struct Engine {
  Engine(StoreOptions options, std::unique_ptr<Database> database,
         std::optional<SharedOpening> shared);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Rebuilds what is in memory, then starts the threads.
  absl::Status Recover();

  // --- Room, engine.cc -----------------------------------------------------------------------

  // Wakes the sealer if it has work. The committer calls it when rows of a commit are in the head.
  void NoteAppended();
  // Waits while open rows take too much memory, for as long as sealing makes progress.
  void AwaitRoom();
  // RESOURCE_EXHAUSTED if sealing is so far behind that no more rows may come.
  absl::Status CheckRoom() const;
  // Journal positions before this must be sealed to keep the journal within its bound; 0 if it is.
  uint64_t PositionsToSeal() const;
  // Runs `work` on the committer's thread, between commits, and waits for it.
  absl::Status OnCommitter(std::function<absl::Status(rocksdb::WriteBatch*)> work);

  // --- Upkeep, engine_upkeep.cc; the first four as Store's -----------------------------------

  absl::Status Seal();
  absl::Status EnforceRetention();
  absl::Status RetentionRound();
  absl::Status UnloadIdleJobs();
  // What the sealer's thread does after each round.
  void AfterSealing();
  // Removes the journal entries whose rows are all sealed, without waiting for it.
  void TrimJournal();
  // Notes that the head may lack rows that were stored of the job so far.
  void HeadForgets(JobId job);
  void RemoveJob(JobId job, rocksdb::WriteBatch* write);
  // Days that move into the bucket, and retention: what a store with a bucket does on a thread of
  // its own, because it waits for the bucket.
  void HistoryRound();
  // Days in the bucket, for views. Null: there is no bucket.
  BucketDays* elsewhere() const { return history == nullptr ? nullptr : history->days(); }
  // Acknowledgements that wait for the bucket, engine_shared.cc: makes the bucket's copy whole, and
  // ships from there on. The committer runs, and nobody can append yet.
  absl::Status StartShared();
  // Ships what is left, as far as the bucket answers; nothing more is acknowledged afterwards.
  void StopShared();
  bool is_shared() const { return opening.has_value(); }

  // The time of the newest stored row, but not later than the clock's.
  absl::Time NewestOrNow() const;
  // The oldest day that each bound keeps, the clock being right; INT64_MIN if it keeps all. Bytes
  // never take the day of `now` or a later one.
  int64_t FirstDayWithinAge(absl::Time now) const;
  int64_t FirstDayWithinBytes(absl::Time now);
  // Ascending, the days before `day` that are stored, and those on which jobs ended.
  std::vector<int64_t> DaysBefore(int64_t day) const;
  // Drops the days before `first_kept`, and forgets agents that are too old at `now`, which may be
  // nullopt; INT64_MIN drops nothing.
  absl::Status DropBefore(int64_t first_kept, std::optional<absl::Time> now);
  absl::StatusOr<std::vector<JobId>> JobsWithEventsBefore(int64_t time_ns) const;
  // Forgets the events before a time, and jobs that have only older rows; agents as DropBefore().
  absl::Status ForgetBefore(int64_t time_ns, std::optional<absl::Time> now);

  // --- Recovery, engine_recover.cc -----------------------------------------------------------

  absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> ReadSealedPositions() const;
  absl::Status ReplayJournal();
  // FAILED_PRECONDITION  days are in a bucket, and the options have none.
  absl::Status OpenHistory();
  // An entry of the journal that is not sealed: brings its rows into the head, or leaves them late.
  absl::Status ReplayEntry(uint64_t position, const RowsEntry& entry, absl::Time now);
  // The layout of an entry, and its job in memory.   DATA_LOSS  they do not fit.
  absl::StatusOr<LayoutPtr> LayoutOf(uint64_t position, const RowsEntry& entry);
  absl::Status LoadBusyJobs();
  // Whether the log has lost its end; from here on the mark says what the database has.
  void CompareMark();
  // Logs, counts and records what is missing.
  void NoteMissing(const CommitCount& found, const CommitCount& marked);
  // Whether the job is in memory, or may be brought there before the store is ready.
  bool LoadsAtOpen(JobId job);
  // Brings the late rows of a job into the head, and the job into memory; to be called before its
  // rows are looked at, or others appended. May wait for a commit. OK if the job has gone.
  absl::Status BringLateRows(JobId job);
  // Some of them, so that open rows do not exceed their memory.
  absl::Status BringSomeLateRows(JobId job);
  // The same on the committer's thread, with the job in memory.
  absl::Status ApplyLateRows(JobId job);
  // Everything in the journal before this position is sealed.
  uint64_t SealedUpTo() const;

  void Log(absl::string_view line) const {
    if (options.log != nullptr) options.log(line);
  }

  const StoreOptions options;
  const std::unique_ptr<Database> database;
  const std::optional<SharedOpening> opening;  // None: acknowledgements wait for the disk alone.
  const uint64_t opened_at;                    // The database's sequence when it was opened.
  ColumnCache columns;                         // Caches columns of the partitions.
  Journal journal;                             // Committer's thread only, but for recovery.
  SeriesIndex index;
  Head head;
  JobTable jobs;
  KeptWrites kept;  // Removals, which memory has forgotten already.
  AgentOwners owners;
  LateRows late;
  uint64_t series_left = 0;  // Recovery's: so many more may be brought into memory.
  ChangeFeed feed;
  CommitMark mark;  // Committer's thread only, but for recovery.
  Committer committer;
  FrameMerger merger;
  Sealer sealer;
  std::atomic<uint64_t> next_event = 1;
  CommitCount missing;  // What the log lacked when the store was opened; without a time.
  LossRuns loss_runs;   // Committer's thread only.
  std::atomic<uint64_t> partitions_dropped = 0;
  // The head may lack rows up to this time, so that reading looks for them in the partitions.
  std::atomic<int64_t> head_knows_after_ns = INT64_MIN;
  std::atomic<uint64_t> over_retention_bytes = 0;
  // Copies of the journal's figures for threads other than the committer's.
  std::atomic<uint64_t> journal_begin = 0;
  std::atomic<uint64_t> journal_end = 0;
  std::atomic<uint64_t> journal_bytes = 0;
  std::unique_ptr<HistoryKeeper> history;  // Null: there is no bucket.
  RepeatingThread history_thread;
  // Sealer's thread only, or the history's if there is a bucket; monotonic.
  RetentionPace pace;
  absl::Time next_retention;
  absl::Time next_idle_round;
  bool running = false;
};

}  // namespace tacho::storage

// Moves days from the disk into the bucket, and remembers which are there.
//
//   a day is over  -> its columns are written as blocks -> the manifest names them (closed)
//   and is old     -> the disk has exactly what was sent -> the day leaves the disk
//   rows come late -> the disk has the day again, with these rows alone: readers see both
//                  -> they become further blocks of the day
//
// A day leaves the disk only after the manifest that names its blocks is known to be in the bucket.
// A crash at any point leaves a day that is on the disk, in the bucket, or in both.
//
// The index stays on the disk. Without it the blocks say nothing: a bucket makes the disk larger,
// it is no copy of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/columns/column_cache.h"
#include "storage/columns/sealer.h"
#include "storage/db/crash_point.h"
#include "storage/db/database.h"
#include "storage/history/bucket_days.h"
#include "storage/history/piece_cache.h"
#include "storage/history_record.h"
#include "storage/options.h"
#include "storage/shard/manifest_commit.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/shard_log.h"
#include "storage/shard/takeover.h"
#include "storage/shipping/log_shipper.h"
#include "storage/shipping/state_export.h"

namespace tacho::storage {

// Round() and DropBefore() are for one thread at a time; the others are thread-safe.
class HistoryKeeper {
 public:
  struct Options {
    const Database* database = nullptr;  // None of these is owned; all must outlive the keeper.
    ColumnCache* columns = nullptr;
    Sealer* sealer = nullptr;
    HistoryOptions history;
    uint64_t local_bytes = 0;         // As StoreOptions::retention_bytes.
    std::function<absl::Time()> now;  // The time of the newest row, or now if that is earlier.
    std::function<absl::Time()> monotonic;
    std::function<void(absl::string_view)> log;  // May be null.
    AtPoint at_point;
    bool waits = true;  // Before a request is repeated. If not, it is not repeated.
    // With acknowledgements that wait for the bucket: what OpenShared() has claimed.
    struct Claimed {
      Manifest manifest;
      std::vector<SealedLog> sealed;
      bool restored = false;
      // Entries of the journal before this position are in older logs than this owner's.
      uint64_t journal_end = 0;
    };
    std::optional<Claimed> claimed;
    std::function<uint64_t()> sealed_up_to;  // As Engine::SealedUpTo(). With `claimed`.
    rocksdb::Env* env = nullptr;             // As StoreOptions::env. With `claimed`, as the next.
    std::string path;
    SharedOptions shared;
  };

  // Asks nothing of the bucket.
  //   DATA_LOSS    what the store remembers of the bucket is damaged.
  //   UNAVAILABLE  the directory of the bucket's cache cannot be used.
  static absl::StatusOr<std::unique_ptr<HistoryKeeper>> Open(Options options);

  // For views.
  BucketDays* days() { return &days_; }
  // Whether the disk has all that is stored of a day.
  bool IsWhole(int64_t day) const { return day >= days_.picture()->whole_from; }

  // Does all that is due: becomes the manifest's owner if it is not yet, closes days, takes days
  // off the disk, deletes objects that nobody needs.
  //   FAILED_PRECONDITION  the bucket has the history of another store, or of another copy of this
  //                        one. The message says what to do. Nothing was changed.
  //   ABORTED              another process has become the owner. It goes on as if it were away.
  //   UNAVAILABLE, others  of the bucket or the disk; the next round tries again.
  absl::Status Round();

  // Removes the days before this one from the manifest, if there are any. Errors as Round(), and
  // then all of them are still there.
  absl::Status DropBefore(int64_t day);

  // --- Acknowledgements that wait for the bucket, history_commit.cc ------------------------------

  // Copies the state into the bucket, and names it in the manifest. A log that is not shipped yet
  // (`base`) begins behind it. What is called besides needs Options::claimed, too.
  //   ABORTED              another process has become the owner.
  //   UNAVAILABLE, others  of the bucket or the disk; try again.
  absl::Status CommitState(bool base);
  // Ships what was written after this sequence of the database.
  void StartShipping(uint64_t after, std::function<void(uint64_t)> on_shipped,
                     std::function<void(const absl::Status&)> on_ended);
  void StopShipping();
  // Waits until everything that is written by now is in the bucket. Errors as
  // LogShipper::AwaitShipped().
  absl::Status AwaitShipped(absl::Duration patience);
  struct SharedFigures {
    uint64_t epoch = 0;
    bool fenced = false;
    uint64_t commits = 0;
    uint64_t failed_commits = 0;
  };
  SharedFigures shared() const;

  // Ends waits before requests are repeated, now and later.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // How the last round ended.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit HistoryKeeper(Options options);

  absl::Status DoRound();
  absl::Status Claim();
  absl::Status Commit(const std::function<void(Manifest*)>& change);
  // Notes a manifest that is known to be in the bucket.
  absl::Status TakeManifest(const Manifest& manifest);
  absl::Status PrepareNonce();
  absl::Status WaitBeforeRetry(int tries) ABSL_LOCKS_EXCLUDED(mutex_);
  void DeleteGarbage();
  // Deletes what owners before this one have left: uploads that no manifest came to name, and what
  // they had no time to delete. Once a day; what two sweeps have found goes.
  absl::Status Sweep();
  void Log(absl::string_view line) const {
    if (options_.log != nullptr) options_.log(line);
  }

  absl::Status TakeClaim();
  absl::Status CommitStateIfDue();
  // What of the days goes with the state: all that the bucket's closed days lack.
  std::vector<PartitionPtr> DaysOfState() const;
  absl::Status CommitRequested(const CommitRequest& request);

  // --- Days, history_days.cc -------------------------------------------------------------------

  absl::Status VisitDay(const PartitionPtr& day);
  // Rows of a day that was taken off the disk before.
  absl::Status SendLate(const PartitionPtr& day);
  // Writes what the disk has, and what the bucket has if `with_bucket`, as blocks; adds the blocks
  // `before`; commits.
  absl::Status Send(const PartitionPtr& day, const BucketDayPtr& with_bucket,
                    std::vector<Block> before);
  // What the disk has of a day, and the count of its writes at that moment.
  struct Content {
    DayDigest digest;
    uint64_t writes = 0;
  };
  absl::StatusOr<Content> Digest(const Partition& day) const;
  // Whether the bucket has just what the disk has.
  bool IsInBucket(int64_t day, const DayDigest& digest) const;
  // Unless something was written since: then the next round does it.
  absl::Status TakeOffDisk(const PartitionPtr& day, uint64_t writes);
  BucketDayPtr FindClosed(int64_t day) const;
  bool HasTooManyBytes() const;

  const Options options_;
  BucketDays days_;
  HistoryRecord record_;
  const ManifestObject object_;
  // Says which epoch is ours; null: we are not the owner yet. Only with Options::claimed anything
  // is appended to it.
  std::unique_ptr<ShardLog> log_;
  std::atomic<bool> fenced_ = false;
  std::optional<uint64_t> nonce_;                            // For the next write of the manifest.
  uint64_t next_object_ = 1;                                 // Of our epoch.
  std::vector<std::pair<absl::Time, std::string>> garbage_;  // And since when.
  absl::Time next_sweep_ = absl::InfinitePast();
  absl::flat_hash_set<std::string> swept_;  // What the last sweep has found.
  std::map<int64_t, absl::Time> late_since_;

  // With Options::claimed.
  std::unique_ptr<StateExporter> exporter_;
  std::unique_ptr<LogShipper> shipper_;
  LogStart replay_from_;
  // Partition::writes() of days when what they had was sent, since the store was opened.
  std::map<int64_t, uint64_t> sent_writes_;
  absl::Time next_commit_ = absl::InfinitePast();
  std::atomic<uint64_t> commits_ = 0;
  std::atomic<uint64_t> failed_commits_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

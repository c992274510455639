// How a store is opened.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "storage/db/crash_point.h"
#include "storage/db/disk_watch.h"
#include "storage/index/series_limits.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

class Bucket;
class PieceCache;

// History in a bucket: days that are over are written there, and old ones are on the disk no more.
// See history_keeper.h.
struct HistoryOptions {
  Bucket* bucket = nullptr;      // Not owned; both must outlive the store. Null: no bucket.
  PieceCache* pieces = nullptr;  // What is kept on the disk of what was read from the bucket.
  std::string owner;             // The name of this collector, for people who look at the bucket.
  // Which of the shards in the bucket this store is, and how many there are: of a cluster with
  // more than one, each store has another number (shard/shard_count.h).
  uint32_t shard = 0;
  uint32_t shards = 1;
  // Columns of days that are older than this leave the disk once the bucket has them. If the tables
  // exceed StoreOptions::retention_bytes, younger days leave it, too.
  absl::Duration local_retention = absl::Hours(24 * 7);
  // So long after its end a day is written into the bucket. Rows that come later are sent again.
  absl::Duration close_after = absl::Hours(4);
  // So long late rows of a day are gathered before they are sent.
  absl::Duration late_after = absl::Hours(1);
  uint64_t block_bytes = 64u << 20;  // Of an object at most.
};

// Acknowledgements that wait for the bucket: what is acknowledged survives the loss of the disk.
// The bucket then has a whole copy of the store. See shipping/log_shipper.h and shared_opening.h.
struct SharedOptions {
  bool on = false;  // Needs StoreOptions::history.
  // The log is cut so often; an acknowledgement waits half of that, and for the bucket's answer.
  absl::Duration interval = absl::Seconds(1);
  // While messages with more bytes than this wait for the bucket, no more are taken.
  uint64_t max_unshipped_bytes = uint64_t{1} << 30;
  // How often the state is copied, which bounds what a restore has to replay; sooner if the log has
  // grown by so many bytes since.
  absl::Duration commit_every = absl::Minutes(10);
  uint64_t commit_bytes = uint64_t{256} << 20;
  // Nothing more is acknowledged by this store: ABORTED, another has become the owner. Others: only
  // opening it again helps. Called once, on any thread. May be null.
  std::function<void(const absl::Status& why)> on_ended;
};

struct StoreOptions {
  std::string path;                                 // Directory; created if missing.
  absl::Duration retention = absl::Hours(24 * 90);  // Older days are dropped. Zero keeps all.
  // Whole days are dropped, the oldest first, while the tables hold more than this; never the day
  // that is being written now. RocksDB's log, at most 256 MiB, comes on top. Zero: no bound.
  // With a bucket, days leave only the disk for that, and only those that the bucket has.
  uint64_t retention_bytes = 0;
  // Days that the background drops by age in an hour of uptime. It also waits with that while
  // `clock_trusted` says no, and takes days as old as the newest stored row says, if that makes
  // them younger than `now` does. Store::EnforceRetention() does none of this. Zero: no limit.
  uint32_t retention_days_per_hour = 1;
  absl::Duration seal_age = absl::Minutes(10);  // Rows wait at most this long in the journal.
  uint32_t seal_rows = 1024;                    // Rows of a layout that are sealed together.
  // A commit begins no sooner than this after the one before, so that under load many messages
  // share one sync; a message that comes after a pause is committed at once.
  absl::Duration commit_spacing = absl::Milliseconds(10);
  uint64_t queue_bytes = 64u << 20;  // Waiting for the disk; more is refused.
  // Memory of rows that are not sealed yet. Past it the longest are sealed early, or compressed, or
  // else sealed while they are short; past one and a half times as much commits wait, past twice as
  // much rows are refused, until that has helped.
  uint64_t open_bytes = 80u << 20;
  uint64_t open_raw_bytes = 16u << 20;  // The part of open_bytes that is never compressed.
  // Past it the layouts that hold the oldest entries are sealed, past twice as much rows are
  // refused: bounds disk and restart time.
  uint64_t journal_bytes = 256u << 20;
  HistoryOptions history;
  SharedOptions shared;
  // Size of a file that is given up when the disk is full, so that the store can make room; at most
  // a sixteenth of a small disk. Rows are taken only while it is there. Zero: none; then a full
  // disk may have to wait for somebody to free space. See ballast.h.
  uint64_t ballast_bytes = 0;
  uint64_t block_cache_bytes = 64u << 20;
  // What queries have decoded of columns, for the next query; see column_cache.h. Zero: nothing.
  uint64_t column_cache_bytes = 64u << 20;
  // What RegisterLayout takes in; nullptr is LimitPolicy::Default(). SetLimits() changes it.
  std::shared_ptr<const LimitPolicy> limits;
  // A job that nothing was recorded for and nobody asked about in this time, and whose rows are all
  // sealed, leaves memory, its latest rows included; its summary stays. It comes back, with the
  // same ids, when it is needed. Zero: jobs stay until they expire.
  absl::Duration job_idle = absl::Hours(1);
  // So many series are read at the opening: those of jobs that are in use, of the smallest first.
  // The other jobs are read when somebody needs them, or soon afterwards in the background, and
  // then also their rows in the journal; so that a job with millions of series delays no other's
  // return. A store that opens on a full disk reads all: bringing rows later takes a write.
  uint64_t series_at_open = 200'000;
  std::function<absl::Time()> now = absl::Now;  // Decides ages; never changes a stored time.
  std::function<absl::Time()> monotonic = MonotonicNow;
  std::function<bool()> clock_trusted;         // Whether `now` may be right. Null: always.
  rocksdb::Env* env = nullptr;                 // Not owned. nullptr is the real file system.
  std::function<void(absl::string_view)> log;  // One line of progress or trouble; may be null.
  // Called on the committer's thread when this changes; see DiskState. May be null.
  std::function<void(DiskState, const absl::Status& why)> on_disk;
  AtPoint at_point;  // Tests end the process there; see crash_point.h.
  // The small frames of a source that are left over are merged once it has been silent this long.
  absl::Duration merge_quiet = absl::Hours(1);
  bool background = true;  // Seal and drop by age on a thread; tests switch it off and call Seal().
};

}  // namespace tacho::storage

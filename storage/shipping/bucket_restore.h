// Makes an ordinary store directory of what a bucket has of a shard, for a collector without a
// bucket. Reads only: nothing in the bucket is claimed, sealed or changed, so its owner may go on
// writing. The directory has what was acknowledged when the restore began, and perhaps what came
// in its first moments; see shard/log_reader.h.
//
// Columns of closed days, which a collector with the bucket reads there, are brought to the disk,
// so that the directory is whole without the bucket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/log_reader.h"
#include "storage/shard/retry.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

struct BucketRestoreOptions {
  std::string path;             // A directory that is empty, or not there.
  rocksdb::Env* env = nullptr;  // Not owned. nullptr is the real file system.
  Bucket* bucket = nullptr;     // Not owned.
  uint32_t shard = 0;
  BeforeRetry before_retry;
  // Closed days before this one stay in the bucket: the directory lacks them. As days from
  // 1 January 1970 UTC. No value: all are brought.
  std::optional<int64_t> closed_days_from;
  // One line of progress. May be null.
  std::function<void(absl::string_view)> log;
};

struct BucketRestored {
  std::string owner;  // As the manifest says.
  uint64_t epoch = 0;
  uint64_t version = 0;
  std::vector<LogExtent> logs;  // What was read of each. The last one may have gone on since.
  uint64_t segments = 0;
  uint64_t records = 0;
  uint64_t state_files = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;      // Of state files and blocks.
  uint64_t log_bytes = 0;  // Of records.
  uint64_t days = 0;       // Closed days that were brought to the disk.
  // Closed days that are not on the disk: those before `closed_days_from`, and those that retention
  // has removed from the bucket while the restore was under way.
  std::vector<int64_t> left_out;
};

// A directory that a failure, a crash or a signal leaves half made is refused by every later
// opening: delete it.
//   NOT_FOUND            the bucket has no manifest of this shard.
//   FAILED_PRECONDITION  the directory is not empty; the disk is too small; or the bucket has no
//                        copy of a store, only old days of one. Nothing was written.
//   DATA_LOSS            an object is missing or damaged; the message names its key.
//   ABORTED              its owner has replaced what the restore still needed: begin again.
//   UNIMPLEMENTED        a newer version of the program has written it.
//   UNAVAILABLE, others  of the disk, the bucket or `before_retry`.
absl::StatusOr<BucketRestored> RestoreFromBucket(const BucketRestoreOptions& options);

// Whether a failed restore has left something at `path`, on the real file system.
bool IsRestoreBegun(const std::string& path);

}  // namespace tacho::storage

// Which days have columns in the bucket, as the manifest says, and how they are read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/bucket/bucket.h"
#include "storage/history/block_readers.h"
#include "storage/history/union_iterator.h"
#include "storage/shard/manifest.h"

namespace rocksdb {
class Iterator;
}

namespace tacho::storage {

// One day in the bucket. Its list of blocks is read when it is first needed. Thread-safe.
class BucketDay {
 public:
  BucketDay(int64_t day, StoredFile list) : day_(day), list_(std::move(list)) {}

  int64_t day() const { return day_; }
  const StoredFile& list() const { return list_; }

  // The runs of its blocks; they stay as long as this does.
  //   DATA_LOSS    the list is gone or damaged; the message names its key.
  //   UNAVAILABLE  the bucket does not answer, or refuses.
  absl::StatusOr<const std::vector<BlockRun>*> Runs(Bucket& bucket) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int64_t day_;
  const StoredFile list_;
  mutable absl::Mutex mutex_;
  mutable std::unique_ptr<const std::vector<BlockRun>> runs_ ABSL_GUARDED_BY(mutex_);
};
using BucketDayPtr = std::shared_ptr<const BucketDay>;

// Thread-safe.
class BucketDays {
 public:
  struct Options {
    Bucket* bucket = nullptr;  // Not owned; both must outlive this and every iterator.
    PieceCache* pieces = nullptr;
    size_t max_open = 1000;  // Blocks that stay open.
  };
  explicit BucketDays(const Options& options);

  // What a reader sees of one moment.
  struct Picture {
    std::vector<BucketDayPtr> days;  // Ascending.
    // From this day on, what the disk has of a day is all of it. Before it, the disk has at most
    // rows that came late.
    int64_t whole_from = INT64_MIN;
  };
  std::shared_ptr<const Picture> picture() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Lists that are the same as before are not read again.
  void Set(const std::map<int64_t, StoredFile>& closed_days, int64_t whole_from)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Over the columns of a day in the bucket and, if `local` is not null, those on the disk.
  // Errors as BucketDay::Runs().
  absl::StatusOr<std::unique_ptr<rocksdb::Iterator>> NewIterator(
      const BucketDay& day, std::unique_ptr<rocksdb::Iterator> local,
      ReadAmount amount = ReadAmount::kLittle);

  size_t open_blocks() const { return readers_.open(); }

 private:
  Bucket* const bucket_;
  BlockReaders readers_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Picture> picture_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

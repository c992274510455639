// The column families that hold sealed columns, one a day.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "storage/db/crash_point.h"
#include "storage/db/disk_watch.h"

namespace rocksdb {
class ColumnFamilyHandle;
struct ColumnFamilyOptions;
class DB;
}  // namespace rocksdb

namespace tacho::storage {

// One day. A reader that holds it may go on reading after the day has been dropped.
class Partition {
 public:
  // `db` is not owned and must outlive the partition; `handle` is owned.
  Partition(int64_t day, rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle);
  ~Partition();

  int64_t day() const { return day_; }
  rocksdb::ColumnFamilyHandle* handle() const { return handle_; }
  // Bytes of its tables.
  uint64_t TableBytes() const;

  // Frames were merged since the database was opened: there are deletions in it.
  void SetMergedInto() const { merged_into_ = true; }
  bool merged_into() const { return merged_into_; }

  // How often columns were added since the database was opened. The sealer counts before it writes.
  void CountWrite() const { ++writes_; }
  uint64_t writes() const { return writes_; }

 private:
  const int64_t day_;
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const handle_;
  mutable std::atomic<bool> merged_into_ = false;
  mutable std::atomic<uint64_t> writes_ = 0;
};
using PartitionPtr = std::shared_ptr<const Partition>;

// Thread-safe.
class Partitions {
 public:
  // `db` is not owned and must outlive this.
  Partitions(rocksdb::DB* db, std::function<rocksdb::ColumnFamilyOptions()> options,
             AtPoint at_point, DiskWatch* disk);

  void Add(PartitionPtr partition) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PartitionPtr> FindOrCreate(int64_t day) ABSL_LOCKS_EXCLUDED(mutex_);
  // The partitions of first_day..last_day, both included, ascending.
  std::vector<PartitionPtr> Between(int64_t first_day, int64_t last_day) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops a day, if it is there.
  absl::Status Drop(int64_t day) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops every day before `day`; returns how many.
  absl::StatusOr<size_t> DropBefore(int64_t day) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status DropOne(std::map<int64_t, PartitionPtr>::iterator day)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  const std::function<rocksdb::ColumnFamilyOptions()> options_;
  const AtPoint at_point_;
  DiskWatch* const disk_;
  mutable absl::Mutex mutex_;
  std::map<int64_t, PartitionPtr> days_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

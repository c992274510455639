// Extents and attributes of jobs, attempts and tasks: kept in memory, written to "state" when rows
// are sealed, and brought up to date from the journal after a crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/event.h"
#include "storage/job.h"
#include "storage/rows_entry.h"
#include "storage/series.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe.
class JobTable {
 public:
  JobTable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state);

  // Reads "state". Call once, first. DATA_LOSS names the key that is damaged.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  // Rows of this layout have come.
  void Include(const Layout& layout, const RowsEntry& rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // Merges attributes and adds their record to a write.
  void Merge(JobId job, const Attributes& attributes, rocksdb::WriteBatch* write)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the records of the layout's attempt and task to a write.
  void StageExtents(const Layout& layout, rocksdb::WriteBatch* write) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets a job and adds the removal of its records to a write.
  void RemoveJob(JobId job, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);

  // All but the name and the series counts, which the index knows.
  JobDetail Describe(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);
  JobSummary Summarise(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Newest row of one task; nullopt if it has none.
  std::optional<int64_t> LastTime(const Series& series) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Attempt {
    Extent extent;
    std::map<std::string, std::string> attributes;
  };
  struct Task {
    Extent extent;
    uint32_t attempt = 0;  // Of the newest row.
  };
  using TaskId = std::pair<std::optional<uint32_t>, std::string>;  // Task and host.
  struct Job {
    std::map<uint32_t, Attempt> attempts;
    std::map<TaskId, Task> tasks;
  };

  static JobSummary SummariseJob(const Job& job);
  absl::Status LoadRecord(absl::string_view key, absl::string_view value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const state_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

// Extents and attributes of jobs, attempts and tasks: kept in memory while the job is in use,
// written to "state" when rows are sealed, and brought up to date from the journal after a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/model/series.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe. Of every job there is a summary in memory; its attempts and tasks are read when they
// are needed, and leave with Unload().
class JobTable {
 public:
  JobTable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state);

  // The calls that return a status or a value with one may read "state". Besides what they say:
  //   DATA_LOSS    a record is damaged; the text names its key.
  //   UNAVAILABLE  the disk refused to be read.

  // Reads the summaries. Call once, first.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  // Brings a job into memory: to be called before Include().
  absl::Status Use(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the jobs out of memory for which `keep` is false. All their rows must be sealed.
  void UnloadUnless(const std::function<bool(JobId)>& keep) ABSL_LOCKS_EXCLUDED(mutex_);

  // Rows of this layout, whose job is in memory, have come.
  void Include(const Layout& layout, const RowsEntry& rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // Merges attributes and adds their record to a write. They are seen once KeepMerged() says that
  // the write was made; ForgetMerged() says that it was not. All three on the committer's thread.
  absl::Status Merge(JobId job, const Attributes& attributes, rocksdb::WriteBatch* write)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepMerged() ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetMerged() ABSL_LOCKS_EXCLUDED(mutex_);
  // An event of the job was written: see JobSummary::told.
  void NoteEvent(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the records of the layouts' jobs, attempts and tasks to a write, each once. The jobs must
  // be in memory.
  void StageExtents(const std::vector<const Layout*>& layouts, rocksdb::WriteBatch* write)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets a job and adds the removal of its records to a write.
  void RemoveJob(JobId job, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);

  // All but the name and the series counts, which the index knows.
  absl::StatusOr<JobDetail> Describe(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<AttemptInfo>> Attempts(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);
  // See Store::Outline; without the metrics, which the index knows.
  absl::StatusOr<JobOutline> Outline(JobId job, bool hosts) const ABSL_LOCKS_EXCLUDED(mutex_);
  JobSummary Summarise(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The time of the newest row of each job that has rows, in no order.
  std::vector<int64_t> LastTimes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Newest row of one task; nullopt if it has none.
  absl::StatusOr<std::optional<int64_t>> LastTime(const Series& series) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Attempt {
    Extent extent;
    std::map<std::string, std::string> attributes;
  };
  struct Task {
    Extent extent;
    uint32_t attempt = 0;  // Attempt of the newest row.
  };
  using TaskId = std::pair<std::optional<uint32_t>, std::string>;  // Task and host.
  // Task and host are looked up without copying the host.
  struct TaskIdOf {
    using is_transparent = void;
    using View = std::pair<std::optional<uint32_t>, absl::string_view>;
    static View Of(const TaskId& id) { return {id.first, id.second}; }
    static View Of(const SeriesSource& source) { return {source.task, source.host}; }
    template <typename T>
    size_t operator()(const T& id) const {
      return absl::HashOf(Of(id));
    }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return Of(a) == Of(b);
    }
  };
  // What leaves memory with the job.
  struct Detail {
    std::map<uint32_t, Attempt> attempts;
    absl::flat_hash_map<TaskId, Task, TaskIdOf, TaskIdOf> tasks;
  };
  struct Job {
    Extent extent;
    // As in JobSummary; for a job in memory, as last counted.
    uint32_t attempts = 0;
    uint32_t tasks = 0;
    uint32_t hosts = 0;
    bool counted = true;             // False: a task has come since.
    std::unique_ptr<Detail> detail;  // nullptr: not in memory.
  };

  static Task* FindOrAddTask(Job* job, const SeriesSource& source);
  static void Count(Job* job);
  static std::string EncodeJob(const Job& job);
  static absl::Status LoadDetail(absl::string_view key, absl::string_view value, Job* job);
  static std::vector<AttemptInfo> AttemptsOf(const Detail& detail);
  static JobOutline OutlineOf(const Detail& detail, bool hosts);
  // Reads the outline of a job that is not in memory.
  absl::StatusOr<JobOutline> ReadOutline(JobId job, bool hosts) const;
  // The highest attempt with rows.
  absl::StatusOr<std::optional<uint32_t>> ReadLastAttempt(JobId job) const;
  // Calls `visit` with key and value of each record of a kind, until it fails.
  absl::Status ForEachRecord(
      char kind, JobId job,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const;
  // The job, in memory; a new one if there is none.
  absl::StatusOr<Job*> Acquire(JobId job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const state_;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  // JobSummary::told, also of jobs that have neither rows nor attributes yet.
  absl::flat_hash_map<JobId, uint64_t> told_ ABSL_GUARDED_BY(mutex_);
  // Attributes that are about to be written, by job and attempt.
  std::map<std::pair<JobId, uint32_t>, std::map<std::string, std::string>> merging_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

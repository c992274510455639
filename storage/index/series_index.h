// Which jobs, metrics, series and layouts there are: ids by labels and labels by ids.
//
// Everything is in the column family "index", and what is in use in memory too. A job nobody has
// used for a while leaves memory but for its name and its number of series, and comes back from its
// records, with the same ids, when somebody needs it. An id is given once and never again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
#include "absl/time/time.h"
#include "storage/db/kept_writes.h"
#include "storage/index/cardinality.h"
#include "storage/index/index_records.h"
#include "storage/index/job_catalog.h"
#include "storage/index/matcher.h"
#include "storage/index/registration.h"
#include "storage/index/series_limits.h"
#include "storage/model/job.h"
#include "storage/model/series.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe. Never call it while holding a lock that is taken inside a RocksDB callback; it takes
// no lock but its own, in the order registering_, loading_, mutex_. Only mutex_ is waited for by
// readers, and it is not held while the disk is read or written.
class SeriesIndex {
 public:
  struct Options {
    std::shared_ptr<const LimitPolicy> limits;  // As in StoreOptions; not nullptr.
    std::function<absl::Time()> now;            // Decides which jobs are in use.
    DiskWatch* disk = nullptr;                  // As KeptWrites has it.
  };

  // Both not owned; they must outlive the index.
  SeriesIndex(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, Options options);

  // Reads which jobs there are; none is in memory afterwards. Call once, first. DATA_LOSS names the
  // key that is damaged.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  // See Store::RegisterLayout. `between_slices` is called after each kSlice columns, with no lock
  // held: meanwhile others register. New records are kept for WriteRegistered(): thousands of
  // layouts may come at once, and each would wait for the synced write that is at work. UNAVAILABLE
  // once the disk has refused some.
  absl::StatusOr<Registration> Register(
      const LayoutDefinition& definition, absl::FunctionRef<void()> between_slices = [] {})
      ABSL_LOCKS_EXCLUDED(registering_, loading_, mutex_);

  // Holds for what is registered from now on.
  void SetLimits(std::shared_ptr<const LimitPolicy> limits) ABSL_LOCKS_EXCLUDED(limits_mutex_) {
    absl::MutexLock lock(&limits_mutex_);
    limits_ = std::move(limits);
  }
  std::shared_ptr<const LimitPolicy> limits() const ABSL_LOCKS_EXCLUDED(limits_mutex_) {
    absl::MutexLock lock(&limits_mutex_);
    return limits_;
  }
  // See Store::HasRoomForJob.
  bool HasRoomForJob(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // See Store::Cardinality.
  absl::StatusOr<CardinalityReport> Cardinality(absl::string_view job, size_t top)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);

  // The id of a job, made if need be (for events and attributes of a job without series).
  absl::StatusOr<JobId> FindOrAddJob(absl::string_view job)
      ABSL_LOCKS_EXCLUDED(registering_, mutex_);
  std::optional<JobId> FindJob(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The calls below that read a job bring it into memory, and count as use of it. Besides what they
  // say themselves:
  //   DATA_LOSS    a record of the job is damaged; the text names its key.
  //   UNAVAILABLE  the disk refused to be read.

  // Brings a job into memory.   NOT_FOUND  it has expired.
  absl::Status Use(JobId job) ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  // NOT_FOUND  there is no such job any more, or no such layout in it.
  absl::StatusOr<LayoutPtr> FindLayout(JobId job, LayoutId id)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  // How many columns a layout has; as above, but the job stays where it is.
  absl::StatusOr<uint64_t> CountColumns(JobId job, LayoutId id) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<SeriesPtr>> Find(const Selector& selector, size_t limit)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  absl::StatusOr<std::vector<Metric>> Metrics(JobId job)  // By name.
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  // How many series each source of a job has.
  absl::StatusOr<std::vector<std::pair<SeriesSource, uint64_t>>> SourceCounts(JobId job)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);

  // See Store::Entities and Store::Metrics.
  absl::StatusOr<JobEntities> Entities(JobId job) ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  absl::StatusOr<std::vector<MetricUse>> MetricUses(JobId job)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  // How many metrics a job has; it stays where it is, and this is no use of it.
  //   NOT_FOUND, DATA_LOSS, UNAVAILABLE  as above.
  absl::StatusOr<uint64_t> CountMetrics(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);

  struct JobInfo {
    JobId id = 0;
    std::string name;
    uint64_t series = 0;
  };
  std::vector<JobInfo> Jobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t SeriesCount(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes what was registered, if anything, unsynced: the next synced write covers it, for the
  // write-ahead log is one. Call it before rows, or anything else that needs it, are written, with
  // the turn to write (DiskWatch::log_mutex()).
  rocksdb::Status WriteRegistered() { return kept_.WriteAll(); }
  // The same without the turn; UNAVAILABLE if the disk refuses.
  absl::Status WriteKept() { return kept_.Write(rocksdb::WriteBatch(), "register a layout"); }

  // Jobs in memory that were last used before a time.
  std::vector<JobId> UnusedSince(absl::Time time) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes such jobs out of memory, except those that were used meanwhile. A series or a layout that
  // somebody holds stays good; if the job comes back before it is let go, it is the same.
  void Unload(const std::vector<JobId>& jobs, absl::Time unused_since) ABSL_LOCKS_EXCLUDED(mutex_);
  bool InMemory(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets a job, and adds the removal of its records to a write that the caller makes.
  void RemoveJob(JobId job, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counts {
    uint64_t jobs = 0;
    uint64_t series = 0;
    // Those of them that are in memory.
    uint64_t jobs_in_memory = 0;
    uint64_t series_in_memory = 0;
    uint64_t layouts_in_memory = 0;
    uint64_t text_bytes_in_memory = 0;
    SeriesId next_series_id = 1;
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using CatalogPtr = std::shared_ptr<JobCatalog>;

  struct Job {
    JobId id = 0;
    std::string name;
    uint64_t series = 0;
    CatalogPtr catalog;  // nullptr: not in memory.
    // The catalogue that left memory, if somebody still holds a part of it: there is never a second
    // one of a job, so that its series can be compared by their addresses.
    std::weak_ptr<JobCatalog> left;
    std::atomic<int64_t> used_ns = 0;  // By Options::now.
  };
  void MarkUsed(Job* job) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Job* FindById(JobId id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Job* AddJob(JobId id, absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetCatalog(Job* job, CatalogPtr catalog) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The catalogue of a job, brought into memory if need be.
  absl::StatusOr<CatalogPtr> Acquire(JobId id) ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  absl::StatusOr<JobId> FindOrAddJobLocked(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registering_) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts what leaves memory with a catalogue.
  void CountOut(const JobCatalog& catalog) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Adds the `top` largest metrics and labels of one job.
  void AddCardinality(const JobCatalog& catalog, const LimitPolicy& policy, size_t top,
                      CardinalityReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Steps of Register(), in storage/index/series_registration.cc.
  IndexUse use() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return {series_in_memory_, series_, text_bytes_};
  }
  // The catalogue of a job by its name; nullptr if there is no such job.
  absl::StatusOr<CatalogPtr> AcquireNamed(absl::string_view job)
      ABSL_LOCKS_EXCLUDED(loading_, mutex_);
  void Resolve(Registering* registering) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds what is pending among some columns, and keeps its records. False if the job was removed
  // meanwhile.
  absl::StatusOr<bool> AddSlice(const LayoutDefinition& definition, const CatalogPtr& catalog,
                                size_t begin, size_t end, Registering* registering)
      ABSL_LOCKS_EXCLUDED(registering_, mutex_);
  bool Add(const CatalogPtr& catalog, size_t begin, size_t end, Registering* registering)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registering_) ABSL_LOCKS_EXCLUDED(mutex_);
  // The layout of what is stored, found or added; nullptr if the job was removed meanwhile. Adds
  // its record to `write` if it is new.
  LayoutPtr FindOrAddLayout(const LayoutDefinition& definition, const CatalogPtr& catalog,
                            const Registering& registering, rocksdb::WriteBatch* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registering_) ABSL_LOCKS_EXCLUDED(mutex_);
  // One try; nullopt if the job was removed at this very moment.
  absl::StatusOr<std::optional<LayoutPtr>> TryRegister(const LayoutDefinition& definition,
                                                       const LimitPolicy& limits,
                                                       absl::FunctionRef<void()> between_slices,
                                                       Registering* registering)
      ABSL_LOCKS_EXCLUDED(registering_, loading_, mutex_);
  // Whether the definition would make a layout that the job has no room for.
  bool IsOverLayoutColumns(const LayoutDefinition& definition, const LimitPolicy& limits,
                           const JobCatalog& catalog, const Registering& registering) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether every column is refused for that; in any case it is noted.
  bool RefuseForLayoutColumns(const LayoutDefinition& definition, const LimitPolicy& limits,
                              const JobCatalog& catalog, Registering* registering)
      ABSL_LOCKS_EXCLUDED(registering_, mutex_);
  absl::StatusOr<std::optional<LayoutPtr>> AddRegistered(const LayoutDefinition& definition,
                                                         const LimitPolicy& limits,
                                                         const CatalogPtr& catalog,
                                                         absl::FunctionRef<void()> between_slices,
                                                         Registering* registering)
      ABSL_LOCKS_EXCLUDED(registering_, loading_, mutex_);

  rocksdb::DB* const db_;
  KeptWrites kept_;  // Writes of what is in memory already.
  rocksdb::ColumnFamilyHandle* const column_family_;
  const Options options_;

  mutable absl::Mutex limits_mutex_;  // Held for nothing else.
  std::shared_ptr<const LimitPolicy> limits_ ABSL_GUARDED_BY(limits_mutex_);

  // One slice of a registration at a time, its write included: no layout is handed out before it is
  // written, and records come in the order of the ids in them.
  absl::Mutex registering_ ABSL_ACQUIRED_BEFORE(loading_);
  absl::Mutex loading_ ABSL_ACQUIRED_BEFORE(mutex_);  // One job at a time is read.
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<JobId, std::unique_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, Job*> jobs_by_name_ ABSL_GUARDED_BY(mutex_);
  NextIds next_ ABSL_GUARDED_BY(mutex_);
  uint64_t series_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t jobs_in_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t series_in_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t layouts_in_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t text_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Text of the catalogues in memory.
};

}  // namespace tacho::storage

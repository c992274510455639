// Which jobs, metrics, series and layouts there are: ids by labels and labels by ids.
//
// Everything is in memory and in the column family "index". An id is given once and never again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/job_catalog.h"
#include "storage/kept_writes.h"
#include "storage/matcher.h"
#include "storage/series.h"
#include "storage/store.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe. Lock order: an index is never called while holding a lock that is taken inside a
// RocksDB callback; it takes no lock but its own.
class SeriesIndex {
 public:
  struct Limits {
    uint64_t max_series = 0;
    uint64_t max_series_per_job = 0;
  };

  // Both not owned; they must outlive the index.
  SeriesIndex(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, Limits limits);

  // Reads the column family. Call once, first. DATA_LOSS names the key that is damaged.
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  // See Store::RegisterLayout. New records are written, not synced: the next synced write covers
  // them, for the write-ahead log is one.
  absl::StatusOr<Store::Registration> Register(const LayoutDefinition& definition)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The id of a job, made if need be (for events and attributes of a job without series).
  absl::StatusOr<JobId> FindOrAddJob(absl::string_view job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<JobId> FindJob(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // nullptr if the layout has left the index.
  LayoutPtr FindLayout(LayoutId id) const ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::vector<SeriesPtr>> Find(const Selector& selector, size_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Metric> Metrics(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many series each source of a job has.
  std::vector<std::pair<SeriesSource, uint64_t>> SourceCounts(JobId job) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::pair<JobId, std::string>> Jobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t SeriesCount(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes what the disk refused before, if anything; UNAVAILABLE if it refuses again.
  absl::Status WriteKept() {
    return kept_.Write(rocksdb::WriteBatch(), "register what was refused before");
  }

  // Forgets a job, and adds the removal of its records to a write that the caller makes.
  void RemoveJob(JobId job, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counts {
    uint64_t jobs = 0;
    uint64_t series = 0;
    uint64_t layouts = 0;
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using CatalogPtr = std::shared_ptr<JobCatalog>;

  CatalogPtr AddJob(JobId id, absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CatalogPtr FindOrAddCatalog(absl::string_view name, rocksdb::WriteBatch* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // nullptr and *refusal if a limit refuses a new series.
  const Series* FindOrAddSeries(JobCatalog* job, const SeriesSource* source,
                                const SeriesDefinition& definition, rocksdb::WriteBatch* write,
                                Store::Registration::Refusal* refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Layout* FindOrAddLayout(JobCatalog* job, const LayoutDefinition& definition,
                                std::vector<const Series*> series, rocksdb::WriteBatch* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string EncodeNextIds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadRecord(absl::string_view key, absl::string_view value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  KeptWrites kept_;  // Of what is in memory already.
  rocksdb::ColumnFamilyHandle* const column_family_;
  const Limits limits_;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, JobId> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, CatalogPtr> catalogs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<LayoutId, LayoutPtr> layouts_ ABSL_GUARDED_BY(mutex_);
  uint64_t series_count_ ABSL_GUARDED_BY(mutex_) = 0;
  JobId next_job_ ABSL_GUARDED_BY(mutex_) = 1;
  SeriesId next_series_ ABSL_GUARDED_BY(mutex_) = 1;
  LayoutId next_layout_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace tacho::storage

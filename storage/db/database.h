// The RocksDB database under the store: its column families, their options, its format version.
//
//   "default"  'format' -> the format version, decimal
//   "journal"  see journal.h           "index"   see series_index.h
//   "state"    see keys.h              "events"  see events.h
//   "day.N"    see frame.h
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/db/crash_point.h"
#include "storage/db/disk_watch.h"
#include "storage/db/memory_overlay.h"
#include "storage/db/partitions.h"
#include "storage/model/stats.h"

namespace rocksdb {
class Cache;
class ColumnFamilyHandle;
class DB;
class Env;
class Statistics;
class Status;
class WriteBatch;
struct FlushOptions;
}  // namespace rocksdb

namespace tacho::storage {

// Version of everything that docs/storage_format.md describes. A database of another version is
// refused, never misread.
inline constexpr int kFormatVersion = 2;

struct DatabaseOptions {
  std::string path;  // Directory; created if missing.
  uint64_t block_cache_bytes = 64u << 20;
  rocksdb::Env* env = nullptr;  // Not owned. nullptr is the real file system.
  AtPoint at_point;             // As StoreOptions::at_point.
  bool ship_log = false;        // Keeps old logs for LogTail; see DiskWatch::ShipLog().
  uint64_t ballast_bytes = 0;   // As StoreOptions::ballast_bytes.
  std::function<void(absl::string_view)> log;  // As StoreOptions::log.
};

struct Database {
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();  // Closes it. Partitions' readers must be gone.

  // Creates the database if it is missing. Statuses as Store::Open(). If the disk is full it is
  // opened in memory, to be read: see DiskWatch::OpenedInMemory().
  static absl::StatusOr<std::unique_ptr<Database>> Open(const DatabaseOptions& options);

  std::unique_ptr<MemoryOverlay> overlay;  // What `db` is opened on; null: on the disk.
  std::unique_ptr<rocksdb::DB> db;
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::Statistics> statistics;
  rocksdb::ColumnFamilyHandle* default_family = nullptr;
  rocksdb::ColumnFamilyHandle* journal = nullptr;
  rocksdb::ColumnFamilyHandle* index = nullptr;
  rocksdb::ColumnFamilyHandle* state = nullptr;
  rocksdb::ColumnFamilyHandle* events = nullptr;
  std::unique_ptr<Partitions> partitions;

  // Writes out what all column families hold in memory.
  rocksdb::Status Flush(const rocksdb::FlushOptions& options) const;

  // For writes other than the committer's: UNAVAILABLE while the disk refuses.
  absl::Status WriteUnsynced(rocksdb::WriteBatch* write, absl::string_view doing) const;

  // The same, and synced.
  absl::Status WriteSynced(rocksdb::WriteBatch* write, absl::string_view doing) const;

  // Writes what is in memory into tables and drops what the journal no longer needs, so that the
  // next start has no log to read and the disk holds no more than the data.
  absl::Status Settle();

  // A copy as of one moment in `path`, which must not exist; see Store::Checkpoint().
  absl::Status Checkpoint(const std::string& path);

  std::unique_ptr<DiskWatch> disk;
  AtPoint at_point;

  // Bytes of the tables of all column families; those of dropped days that a reader still holds are
  // left out, which RocksDB's own sum counts.
  uint64_t TableBytes() const;
  // Disk, memtable, cache and compaction figures, over all column families.
  void FillStats(StoreStats* stats) const;

 private:
  // Opens or creates it on `env`. *no_space: the disk is full.
  absl::Status OpenOn(rocksdb::Env* env, const DatabaseOptions& options, bool* no_space);
  // The same without a write to the disk.
  absl::Status OpenInMemory(const DatabaseOptions& options);
};

}  // namespace tacho::storage

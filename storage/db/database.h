// The RocksDB database under the store: its column families, their options, its format version.
//
//   "default"  'format' -> the format version, decimal
//   "journal"  see journal.h           "index"   see series_index.h
//   "state"    see keys.h              "events"  see events.h
//   "day.N"    see frame.h
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/db/crash_point.h"
#include "storage/db/disk_watch.h"
#include "storage/db/partitions.h"
#include "storage/model/stats.h"

namespace rocksdb {
class Cache;
class ColumnFamilyHandle;
class DB;
class Env;
class Statistics;
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
};

struct Database {
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();  // Closes it. Partitions' readers must be gone.

  // Creates the database if it is missing. Statuses as Store::Open().
  static absl::StatusOr<std::unique_ptr<Database>> Open(const DatabaseOptions& options);

  std::unique_ptr<rocksdb::DB> db;
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::Statistics> statistics;
  rocksdb::ColumnFamilyHandle* default_family = nullptr;
  rocksdb::ColumnFamilyHandle* journal = nullptr;
  rocksdb::ColumnFamilyHandle* index = nullptr;
  rocksdb::ColumnFamilyHandle* state = nullptr;
  rocksdb::ColumnFamilyHandle* events = nullptr;
  std::unique_ptr<Partitions> partitions;

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
};

}  // namespace tacho::storage

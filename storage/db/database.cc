// Opens RocksDB with options that were measured, and keeps its column families: a few for what is
// small, and one for each day of columns, so that a day is dropped without rewriting any other.
#include "storage/db/database.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"
#include "storage/db/directory_check.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

constexpr char kFormatKey[] = "format";

// What all column families may hold in memory before the largest is written out.
constexpr size_t kMemtableBytes = 128 << 20;
// A log is kept while any column family has unwritten data in it: bounds disk and restart time.
constexpr uint64_t kMaxLogBytes = 256 << 20;
// Old logs are deleted once they are in the bucket. If a bucket is away for longer than this, they
// go all the same, and the store has to be opened again.
constexpr uint64_t kShippedLogSeconds = uint64_t{7} * 86'400;
// A day into which frames were merged is compacted on closing if it is no larger: about a second.
// Deletions in larger ones are left to RocksDB.
constexpr uint64_t kMaxSettledDay = 64 << 20;

rocksdb::BlockBasedTableOptions TableOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  return table;
}

rocksdb::ColumnFamilyOptions FamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions(cache)));
  // Half of what LZ4 leaves of the index, at every level: a small store never compacts.
  options.compression = rocksdb::kZSTD;
  options.level_compaction_dynamic_level_bytes = true;
  return options;
}

// Measured with seal_bench on 200 hosts, 17,600 columns of 360 rows: days take 1.405 B a sample
// with LZ4 and RocksDB's blocks of 4 KiB with 16 keys to a restart, 1.385 with ZSTD, 1.357 in
// blocks of 32 KiB, 1.354 with 64 keys to a restart, 1.351 without filters; a dictionary gains
// nothing. CPU time differs by less than its noise.
rocksdb::ColumnFamilyOptions PartitionOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options = FamilyOptions(cache);
  rocksdb::BlockBasedTableOptions table = TableOptions(cache);
  // Some dozen columns: only what repeats from column to column, in keys and headers, is left to
  // compress, and a block that shrinks by less than an eighth is kept as it was.
  table.block_size = 32 << 10;
  table.block_restart_interval = 64;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // Filters are for the time columns, which are looked up by their keys; on the last level nearly
  // all of them are found.
  options.optimize_filters_for_hits = true;
  options.write_buffer_size = 32 << 20;
  // Days far apart may be written side by side (a backfill): each must be cheap while it is small.
  options.arena_block_size = 64 << 10;
  // Merging frames deletes; a table is compacted when a third of it is deletions.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(0, 0, 0.33));
  return options;
}

rocksdb::ColumnFamilyOptions JournalOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options = FamilyOptions(cache);
  options.write_buffer_size = 64 << 20;
  // Entries live for minutes: compressing them costs more than it saves.
  options.compression = rocksdb::kNoCompression;
  return options;
}

rocksdb::DBOptions DbOptions(rocksdb::Env* env) {
  rocksdb::DBOptions db;
  if (env != nullptr) db.env = env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.paranoid_checks = true;
  db.db_write_buffer_size = kMemtableBytes;
  db.max_total_wal_size = kMaxLogBytes;
  db.max_background_jobs = 2;
  db.info_log = std::make_shared<SilentLogger>();
  db.max_open_files = 512;
  // A tail that a crash tore ends the log there: nothing behind it was acknowledged.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // Known to lose or invent synced data in this version; off by default, and kept so.
  db.recycle_log_file_num = 0;
  db.wal_bytes_per_sync = 0;
  db.manual_wal_flush = false;
  db.track_and_verify_wals_in_manifest = true;
  // One write goes to several column families. When the disk was full and memory is written out to
  // leave a torn log behind, a crash in between must not find it done for some of them: the log
  // would then be replayed for the others only.
  db.atomic_flush = true;
  // Writes that are replayed at start go into tables and are synced anew: after a failed sync the
  // log that can be read need not be what the disk has.
  db.avoid_flush_during_recovery = false;
  // Settle() writes out; what then is only in memory is the marker of disk_watch.h. After a refused
  // write it must not be tried.
  db.avoid_flush_during_shutdown = true;
  return db;
}

// `paused`: nothing is compacted until that is allowed.
std::vector<rocksdb::ColumnFamilyDescriptor> FamilyDescriptors(
    const std::vector<std::string>& names, const std::shared_ptr<rocksdb::Cache>& cache,
    bool paused) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names) {
    families.emplace_back(name, name == kJournalFamily     ? JournalOptions(cache)
                                : ParsePartitionName(name) ? PartitionOptions(cache)
                                                           : FamilyOptions(cache));
    families.back().options.disable_auto_compactions = paused;
  }
  return families;
}

// RocksDB makes the last directory of a path only.
absl::Status CreateDirectories(const DatabaseOptions& options) {
  if (options.env != nullptr) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(options.path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("create ", options.path, ": ", error.message()));
}

// Why the database could not be opened, with the log where RocksDB names nothing.
absl::Status Describe(const rocksdb::Status& status, const DatabaseOptions& options) {
  absl::Status plain = FromRocksDb(status, absl::StrCat("open ", options.path));
  if (!status.IsCorruption() || absl::StrContains(status.ToString(), options.path) ||
      absl::StrContains(status.ToString(), "CURRENT")) {
    return plain;
  }
  return absl::DataLossError(absl::StrCat(plain.message(), ", in the write-ahead log (",
                                          LogsIn(options.env, options.path), ")"));
}

// Nothing in any of the column families.
absl::StatusOr<bool> IsEmpty(rocksdb::DB* db,
                             const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  for (rocksdb::ColumnFamilyHandle* family : families) {
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), family));
    it->SeekToFirst();
    if (it->Valid()) return false;
    if (!it->status().ok()) return FromRocksDb(it->status(), "look for records");
  }
  return true;
}

absl::Status CheckFormat(rocksdb::DB* db,
                         const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  std::string text;
  const rocksdb::Status status = db->Get(rocksdb::ReadOptions(), kFormatKey, &text);
  if (status.IsNotFound()) {
    // New, or left by a process that ended before its first write.
    TACHO_ASSIGN_OR_RETURN(const auto is_empty, IsEmpty(db, families));
    if (is_empty) {
      rocksdb::WriteOptions synced;
      synced.sync = true;
      return FromRocksDb(db->Put(synced, kFormatKey, absl::StrCat(kFormatVersion)),
                         "write the format version");
    }
    return absl::FailedPreconditionError(
        "the directory holds a RocksDB database that is not Tachograph's: choose another");
  }
  if (!status.ok()) return FromRocksDb(status, "read the format version");
  int version = 0;
  if (absl::SimpleAtoi(text, &version) && version == kFormatVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the database has format version \"", text, "\"; this program reads version ", kFormatVersion,
      " only: run the program that wrote it, or choose another directory"));
}

}  // namespace

Database::~Database() {
  if (db == nullptr) return;
  partitions.reset();
  for (auto* handle : {default_family, journal, index, state, events}) {
    if (handle != nullptr) db->DestroyColumnFamilyHandle(handle);
  }
  if (!disk->must_stay_open()) return;
  // The process is about to end anyway.
  rocksdb::CancelAllBackgroundWork(db.get(), /*wait=*/true);
  static_cast<void>(db.release());
}

absl::Status Database::OpenOn(rocksdb::Env* env, const DatabaseOptions& options, bool* no_space) {
  *no_space = false;
  cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  rocksdb::DBOptions db_options = DbOptions(env);
  if (options.ship_log) {
    db_options.WAL_ttl_seconds = kShippedLogSeconds;
    disk->ShipLog();
  }
  db_options.listeners.push_back(disk->listener());
  statistics = rocksdb::CreateDBStatistics();
  // Counters only: what they cost does not show.
  statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  db_options.statistics = statistics;

  std::vector<std::string> names;
  // Fails if there is no database yet, or if it cannot be read, which Open() reports.
  rocksdb::DB::ListColumnFamilies(db_options, options.path, &names).PermitUncheckedError();
  TACHO_RETURN_IF_ERROR(CheckDirectory(env, options.path, names));
  for (const char* name : {"default", kJournalFamily, "index", "state", "events"}) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  const auto families = FamilyDescriptors(names, cache, overlay != nullptr);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, options.path, families, &handles, &opened);
  *no_space = status.IsNoSpace();
  if (!status.ok()) return Describe(status, options);
  db.reset(opened);
  partitions = std::make_unique<Partitions>(
      opened, [cache = cache] { return PartitionOptions(cache); }, options.at_point, disk.get());
  at_point = options.at_point;
  disk->SetRequestFlush([this] {
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;
    Flush(flush).PermitUncheckedError();
  });
  for (size_t i = 0; i < handles.size(); ++i) {
    if (const auto day = ParsePartitionName(names[i])) {
      partitions->Add(std::make_shared<const Partition>(*day, opened, handles[i]));
      continue;
    }
    (names[i] == kJournalFamily ? journal
     : names[i] == "index"      ? index
     : names[i] == "state"      ? state
     : names[i] == "events"     ? events
                                : default_family) = handles[i];
  }
  return CheckFormat(opened, handles);
}

absl::Status Database::OpenInMemory(const DatabaseOptions& options) {
  rocksdb::Env* const env = options.env == nullptr ? rocksdb::Env::Default() : options.env;
  if (!env->FileExists(absl::StrCat(options.path, "/CURRENT")).ok()) {
    return absl::UnavailableError(absl::StrCat("the disk has no room for a new database in ",
                                               options.path, ": free space there"));
  }
  overlay = std::make_unique<MemoryOverlay>(env);
  bool no_space = false;
  TACHO_RETURN_IF_ERROR(OpenOn(overlay.get(), options, &no_space));
  disk->OpenedInMemory(overlay.get(),
                       absl::UnavailableError("the disk was full at the start: what is stored can "
                                              "be read, nothing is written"),
                       [this] {
                         std::vector<rocksdb::ColumnFamilyHandle*> families = {
                             default_family, journal, index, state, events};
                         for (const PartitionPtr& day : partitions->Between(INT64_MIN, INT64_MAX)) {
                           families.push_back(day->handle());
                         }
                         return FromRocksDb(db->EnableAutoCompaction(families), "compact again");
                       });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const DatabaseOptions& options) {
  TACHO_RETURN_IF_ERROR(CreateDirectories(options));
  auto database = std::make_unique<Database>();
  database->disk = std::make_unique<DiskWatch>(Ballast::Options{
      .path = options.path,
      .env = options.env,
      .bytes = options.ballast_bytes,
      .log = options.log,
  });
  bool no_space = !database->disk->MakeRoomToOpen();
  if (!no_space) {
    const absl::Status opened = database->OpenOn(options.env, options, &no_space);
    if (!opened.ok() && !no_space) return opened;
  }
  if (no_space) TACHO_RETURN_IF_ERROR(database->OpenInMemory(options));
  return database;
}

absl::Status Database::WriteUnsynced(rocksdb::WriteBatch* write, absl::string_view doing) const {
  absl::MutexLock turn(disk->log_mutex());
  if (disk->blocks_writes()) return disk->trouble();
  disk->KeepResumable(db.get());
  return FromRocksDb(db->Write(rocksdb::WriteOptions(), write), doing);
}

absl::Status Database::WriteSynced(rocksdb::WriteBatch* write, absl::string_view doing) const {
  absl::MutexLock turn(disk->log_mutex());
  if (disk->blocks_writes()) return disk->trouble();
  disk->KeepResumable(db.get());
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status status = db->Write(synced, write);
  if (!status.ok()) disk->Note(status);
  return FromRocksDb(status, doing);
}

rocksdb::Status Database::Flush(const rocksdb::FlushOptions& options) const {
  std::vector<rocksdb::ColumnFamilyHandle*> families = {default_family, journal, index, state,
                                                        events};
  const std::vector<PartitionPtr> days = partitions->Between(INT64_MIN, INT64_MAX);
  for (const PartitionPtr& day : days) families.push_back(day->handle());
  return db->Flush(options, families);
}

absl::Status Database::Settle() {
  const std::vector<PartitionPtr> days = partitions->Between(INT64_MIN, INT64_MAX);
  // Nobody else writes any more. A store that has met a full disk may have so many small tables
  // that RocksDB would wait for others to compact them, without an end, before it writes memory
  // out.
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  rocksdb::CompactRangeOptions compact;
  compact.allow_write_stall = true;
  const rocksdb::Status flushed = Flush(flush);
  if (!flushed.ok()) return FromRocksDb(flushed, "write out memory");
  Reach(at_point, crash_point::kCloseFlushed);
  const rocksdb::Status compacted = db->CompactRange(compact, journal, nullptr, nullptr);
  if (!compacted.ok()) return FromRocksDb(compacted, "drop the trimmed part of the journal");
  for (const PartitionPtr& day : days) {
    if (!day->merged_into() || day->TableBytes() > kMaxSettledDay) continue;
    const rocksdb::Status settled = db->CompactRange(compact, day->handle(), nullptr, nullptr);
    if (!settled.ok()) return FromRocksDb(settled, "drop frames that were merged");
  }
  return absl::OkStatus();
}

namespace {

// A log without a record, as after opening, is not copied, and a copy without a log is taken for
// one that lost it. A comment is a record, and of no consequence.
absl::Status FillEmptyLog(rocksdb::DB* db, DiskWatch* disk) {
  rocksdb::VectorLogPtr logs;  // Without empty ones.
  rocksdb::Status status = db->GetSortedWalFiles(logs);
  if (!status.ok()) return FromRocksDb(status, "list the log");
  if (!logs.empty()) return absl::OkStatus();
  rocksdb::WriteBatch comment;
  status = comment.PutLogData("copied from here");
  absl::MutexLock turn(disk->log_mutex());
  if (disk->blocks_writes()) return disk->trouble();
  disk->KeepResumable(db);
  if (status.ok()) status = db->Write(rocksdb::WriteOptions(), &comment);
  if (status.ok()) return absl::OkStatus();
  disk->Note(status);
  return FromRocksDb(status, "write to the log");
}

}  // namespace

absl::Status Database::Checkpoint(const std::string& path) {
  if (disk->blocks_writes()) return disk->trouble();
  rocksdb::Checkpoint* made = nullptr;
  const rocksdb::Status able = rocksdb::Checkpoint::Create(db.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (!able.ok()) return FromRocksDb(able, absl::StrCat("copy to ", path));
  TACHO_RETURN_IF_ERROR(FillEmptyLog(db.get(), disk.get()));
  // Never writes out memory: the log, which holds the same, is copied instead. So a copy to a disk
  // that is full cannot be what makes the store itself refuse.
  const rocksdb::Status copied =
      checkpoint->CreateCheckpoint(path, std::numeric_limits<uint64_t>::max());
  if (copied.IsNoSpace()) {
    return absl::ResourceExhaustedError(absl::StrCat("copy to ", path, ": ", copied.ToString()));
  }
  return FromRocksDb(copied, absl::StrCat("copy to ", path));
}

uint64_t Database::TableBytes() const {
  uint64_t total = 0;
  for (auto* handle : {default_family, journal, index, state, events}) {
    uint64_t bytes = 0;
    db->GetIntProperty(handle, rocksdb::DB::Properties::kLiveSstFilesSize, &bytes);
    total += bytes;
  }
  for (const PartitionPtr& day : partitions->Between(INT64_MIN, INT64_MAX)) {
    total += day->TableBytes();
  }
  return total;
}

void Database::FillStats(StoreStats* stats) const {
  const auto aggregated = [&](const std::string& property) {
    uint64_t value = 0;
    db->GetAggregatedIntProperty(property, &value);
    return value;
  };
  stats->disk_bytes = aggregated(rocksdb::DB::Properties::kTotalSstFilesSize);
  rocksdb::VectorLogPtr logs;
  if (db->GetSortedWalFiles(logs).ok()) {
    for (const auto& log : logs) stats->disk_bytes += log->SizeFileBytes();
  }
  stats->memtable_bytes = aggregated(rocksdb::DB::Properties::kSizeAllMemTables);
  stats->pending_compaction_bytes =
      aggregated(rocksdb::DB::Properties::kEstimatePendingCompactionBytes);
  stats->block_cache_bytes = cache->GetUsage();
  stats->log_bytes_written = statistics->getTickerCount(rocksdb::WAL_FILE_BYTES);
  stats->flush_bytes_written = statistics->getTickerCount(rocksdb::FLUSH_WRITE_BYTES);
  stats->compaction_bytes_written = statistics->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  stats->partitions = partitions->size();
  stats->ballast_bytes = disk->ballast()->held();
  stats->read_only = disk->is_in_memory() ? 1 : 0;
}

}  // namespace tacho::storage

// Opens RocksDB for a spool, in as little memory as it runs well with, and distinguishes a torn
// tail, which a crash leaves, from damage.
#include "storage/journal/spool_journal.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"
#include "storage/db/directory_check.h"
#include "storage/journal/journal.h"

namespace tacho::storage {

struct SpoolJournal::Database {
  ~Database() {
    journal.reset();
    for (rocksdb::ColumnFamilyHandle* family : families) db->DestroyColumnFamilyHandle(family);
  }

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;  // Owned by db. Default, journal.
  std::unique_ptr<Journal> journal;
  uint64_t generation = 0;
};

namespace {

constexpr char kFormatKey[] = "format";
constexpr char kSpoolVersion[] = "1";
constexpr char kGenerationKey[] = "generation";
constexpr char kNotePrefix[] = "note/";

// The agent may be 30 MiB large in all, and a spool is usually a few entries: RocksDB gets as
// little as it runs well with.
constexpr size_t kWriteBufferBytes = 1u << 20;
constexpr size_t kBlockCacheBytes = 1u << 20;
constexpr size_t kTableFileBytes = 8u << 20;
constexpr size_t kManifestPreallocation = 64u << 10;
constexpr int kMaxOpenFiles = 32;
// Left free on the disk, but no more than an eighth of a small one.
constexpr uint64_t kSpareBytes = 16u << 20;

rocksdb::Slice AsSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }

absl::Status SpoolStatus(const rocksdb::Status& status, absl::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(doing, ": ", status.ToString());
  // A file that another file names is gone, or a column family is: nothing that waiting heals.
  if (status.IsCorruption() || status.IsPathNotFound() || status.IsInvalidArgument()) {
    return absl::DataLossError(message);
  }
  return absl::UnavailableError(message);
}

rocksdb::DBOptions DbOptions(const SpoolJournalOptions& options) {
  rocksdb::DBOptions db;
  if (options.env != nullptr) db.env = options.env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  // A tail that a crash tore ends the log there; what was synced lies before it. Damage before the
  // tail is refused: the entries behind it would be gone without a word, and their positions used
  // again for others, which the collector would take for repeats.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // Notes are small and entries are not: without this a log would be kept until the notes of it
  // fill a write buffer.
  db.atomic_flush = true;
  db.max_open_files = kMaxOpenFiles;
  db.skip_stats_update_on_db_open = true;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.info_log = std::make_shared<SilentLogger>();
  db.max_manifest_file_size = 1u << 20;
  db.manifest_preallocation_size = kManifestPreallocation;
  return db;
}

rocksdb::ColumnFamilyOptions FamilyOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes, /*num_shard_bits=*/0);

  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = kWriteBufferBytes;
  family.max_write_buffer_number = 3;  // One is filled while others are written out.
  family.target_file_size_base = kTableFileBytes;
  // Nearly everything is deleted soon after: compressing it would be work for nothing.
  family.compression = rocksdb::kNoCompression;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return family;
}

absl::StatusOr<std::optional<std::string>> Get(rocksdb::DB* db, absl::string_view key) {
  std::string value;
  const rocksdb::Status status = db->Get(rocksdb::ReadOptions(), AsSlice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return SpoolStatus(status, absl::StrCat("read ", key));
  return std::optional<std::string>(std::move(value));
}

absl::Status CreateParents(const SpoolJournalOptions& options) {
  if (options.env != nullptr) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(options.path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("create ", options.path, ": ", error.message()));
}

// Writes what a new database begins with, synced: positions count within the generation.
absl::StatusOr<uint64_t> CreateGeneration(rocksdb::DB* db) {
  std::random_device random;
  uint64_t generation = 0;
  while (generation == 0) generation = (uint64_t{random()} << 32) | random();
  rocksdb::WriteBatch write;
  write.Put(kFormatKey, kSpoolVersion);
  write.Put(kGenerationKey, absl::StrCat(absl::Hex(generation, absl::kZeroPad16)));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  TACHO_RETURN_IF_ERROR(SpoolStatus(db->Write(synced, &write), "create"));
  return generation;
}

// The generation of the database, which gets one if it is new.
absl::StatusOr<uint64_t> FindGeneration(rocksdb::DB* db, const Journal& journal) {
  const auto format = Get(db, kFormatKey);
  if (!format.ok()) return format.status();
  TACHO_ASSIGN_OR_RETURN(const auto digits, Get(db, kGenerationKey));

  if (!format->has_value() && !digits.has_value() && journal.end() == 1) {
    return CreateGeneration(db);
  }
  if (!format->has_value() || !digits.has_value()) {
    return absl::DataLossError("entries without a format version or a generation");
  }
  if (**format != kSpoolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("its format version is ", **format, ", this program reads ", kSpoolVersion));
  }
  uint64_t generation = 0;
  if (!absl::SimpleHexAtoi(*digits, &generation) || generation == 0) {
    return absl::DataLossError("the generation is damaged");
  }
  return generation;
}

void StageNotes(const std::vector<SpoolJournal::Note>& notes, rocksdb::WriteBatch* write) {
  for (const SpoolJournal::Note& note : notes) {
    const std::string key = absl::StrCat(kNotePrefix, note.key);
    if (note.value.empty()) {
      write->Delete(key);
    } else {
      write->Put(key, note.value);
    }
  }
}

}  // namespace

SpoolJournal::SpoolJournal(SpoolJournalOptions options) : options_(std::move(options)) {}

SpoolJournal::~SpoolJournal() = default;

absl::StatusOr<std::unique_ptr<SpoolJournal>> SpoolJournal::Open(SpoolJournalOptions options) {
  auto spool = std::unique_ptr<SpoolJournal>(new SpoolJournal(std::move(options)));
  TACHO_ASSIGN_OR_RETURN(auto database, OpenDatabase(spool->options_));

  spool->generation_ = database->generation;
  absl::MutexLock lock(&spool->mutex_);
  spool->Adopt(std::move(database));
  return spool;
}

absl::Status SpoolJournal::Remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(std::filesystem::path(path) / "CURRENT", error);
  if (error) return absl::UnavailableError(absl::StrCat("remove ", path, ": ", error.message()));
  return SpoolStatus(rocksdb::DestroyDB(path, rocksdb::Options(DbOptions({}), FamilyOptions())),
                     absl::StrCat("remove ", path));
}

absl::StatusOr<std::shared_ptr<SpoolJournal::Database>> SpoolJournal::OpenDatabase(
    const SpoolJournalOptions& options) {
  TACHO_RETURN_IF_ERROR(CreateParents(options));
  std::vector<std::string> names;
  rocksdb::DB::ListColumnFamilies(DbOptions(options), options.path, &names).PermitUncheckedError();
  TACHO_RETURN_IF_ERROR(CheckDirectory(options.env, options.path, names));

  auto database = std::make_shared<Database>();
  const std::string opening = absl::StrCat("open ", options.path);
  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, FamilyOptions()}, {kJournalFamily, FamilyOptions()}};
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(DbOptions(options), options.path, families, &database->families, &db);
  const bool names_file = absl::StrContains(opened.ToString(), options.path) ||
                          absl::StrContains(opened.ToString(), "CURRENT");
  if (opened.IsCorruption() && !names_file) {
    return absl::DataLossError(absl::StrCat(opening, ": ", opened.ToString(), ", in its log (",
                                            LogsIn(options.env, options.path), ")"));
  }
  if (!opened.ok()) return SpoolStatus(opened, opening);

  database->db.reset(db);
  database->journal = std::make_unique<Journal>(db, database->families.back());
  absl::Status status = database->journal->Recover();
  if (status.ok()) {
    const auto generation = FindGeneration(db, *database->journal);
    status = generation.status();
    database->generation = generation.value_or(0);
  }
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(opening, ": ", status.message()));
  }
  return database;
}

uint64_t SpoolJournal::begin() const {
  absl::MutexLock lock(&mutex_);
  return begin_;
}

uint64_t SpoolJournal::end() const {
  absl::MutexLock lock(&mutex_);
  return end_;
}

uint64_t SpoolJournal::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

void SpoolJournal::Adopt(std::shared_ptr<Database> database) {
  database_ = std::move(database);
  NotePositions();
}

void SpoolJournal::NotePositions() {
  begin_ = database_->journal->begin();
  end_ = database_->journal->end();
  bytes_ = database_->journal->bytes();
}

absl::StatusOr<std::shared_ptr<SpoolJournal::Database>> SpoolJournal::Use() {
  absl::MutexLock lock(&mutex_);
  return UseLocked();
}

absl::StatusOr<std::shared_ptr<SpoolJournal::Database>> SpoolJournal::UseLocked() {
  if (database_ == nullptr) {
    if (absl::Status status = Reopen(); !status.ok()) return status;
  }
  return database_;
}

absl::Status SpoolJournal::Reopen() {
  const absl::Time now = MonotonicNow();
  if (now < last_reopen_ + options_.reopen_interval) {
    return absl::UnavailableError(
        absl::StrCat(options_.path, ": closed after the disk refused; opened again soon"));
  }
  last_reopen_ = now;

  auto database = OpenDatabase(options_);
  if (!database.ok()) return absl::UnavailableError(database.status().message());
  Journal& journal = *(*database)->journal;
  if ((*database)->generation != generation_ || journal.end() < end_) {
    return absl::UnavailableError(
        absl::StrCat(options_.path, ": another spool has taken its place; restart the agent"));
  }
  // It has reached the log after all, and what it removed is gone.
  const bool removed = journal.end() > end_ && journal.begin() > begin_;
  if (journal.end() > end_ && !removed) {
    // The refused write has reached the log after all, but its caller got an error and will make
    // it again. (Its notes stay; the repeat replaces them.)
    rocksdb::WriteBatch write;
    journal.StageRollback(end_, &write);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const rocksdb::Status status = (*database)->db->Write(synced, &write);
    if (!status.ok()) return absl::UnavailableError(status.ToString());
  }
  Adopt(*std::move(database));
  if (!removed) return absl::OkStatus();
  // What came with the removal reports it, so it stays. The caller still has the old positions.
  return absl::UnavailableError(
      absl::StrCat(options_.path, ": a write that the disk refused was made after all; try again"));
}

absl::Status SpoolJournal::Write(const std::shared_ptr<Database>& database,
                                 rocksdb::WriteBatch* write) {
  const rocksdb::Status status = database->db->Write(rocksdb::WriteOptions(), write);
  if (status.ok()) {
    NotePositions();
    return absl::OkStatus();
  }
  // RocksDB refuses every write after the first refused one until it is opened again.
  database_.reset();
  return absl::UnavailableError(absl::StrCat("write ", options_.path, ": ", status.ToString()));
}

absl::StatusOr<uint64_t> SpoolJournal::Append(absl::string_view entry,
                                              const std::vector<Note>& notes) {
  const std::string copy(entry);
  return AppendAll({&copy, 1}, notes);
}

absl::StatusOr<uint64_t> SpoolJournal::AppendAll(std::span<const std::string> entries,
                                                 const std::vector<Note>& notes, uint64_t trim_to) {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(const auto database, UseLocked());

  rocksdb::WriteBatch write;
  const uint64_t first = database->journal->end();
  for (const std::string& entry : entries) database->journal->Stage(entry, &write);
  database->journal->StageTrim(trim_to, &write);
  StageNotes(notes, &write);
  TACHO_RETURN_IF_ERROR(Write(database, &write));
  return first;
}

absl::Status SpoolJournal::Replace(uint64_t position, absl::string_view entry, uint64_t trim_to) {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(const auto database, UseLocked());
  if (position < begin_ || position >= end_) {
    return absl::OutOfRangeError(absl::StrCat("no entry is kept at ", position));
  }
  rocksdb::WriteBatch write;
  database->journal->StageReplace(position, entry, &write);
  database->journal->StageTrim(trim_to, &write);
  return Write(database, &write);
}

absl::Status SpoolJournal::WriteNotes(const std::vector<Note>& notes) {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(const auto database, UseLocked());

  rocksdb::WriteBatch write;
  StageNotes(notes, &write);
  return Write(database, &write);
}

absl::Status SpoolJournal::Trim(uint64_t position) {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(const auto database, UseLocked());

  rocksdb::WriteBatch write;
  database->journal->StageTrim(position, &write);
  if (write.Count() == 0) return absl::OkStatus();
  return Write(database, &write);
}

absl::Status SpoolJournal::Sync() {
  const auto database = Use();
  if (!database.ok()) return database.status();

  // Unlike a synced write this lets others write meanwhile.
  rocksdb::Status status = (*database)->db->SyncWAL();
  if (status.IsNotSupported()) {  // Some file systems cannot.
    rocksdb::WriteOptions synced;
    synced.sync = true;
    rocksdb::WriteBatch nothing;
    status = (*database)->db->Write(synced, &nothing);
  }
  if (status.ok()) return absl::OkStatus();

  // After a failed fsync the kernel may have dropped what it held; opening the database again
  // writes what can still be read of the log into a table, and syncs that.
  absl::MutexLock lock(&mutex_);
  if (database_ == *database) database_.reset();
  return absl::UnavailableError(absl::StrCat("sync ", options_.path, ": ", status.ToString()));
}

bool SpoolJournal::HasSpareRoom() const {
  struct statvfs disk = {};
  // If the room is not known, nothing is refused.
  if (options_.env != nullptr || ::statvfs(options_.path.c_str(), &disk) != 0) return true;
  const uint64_t spare = std::min(kSpareBytes, uint64_t{disk.f_blocks} * disk.f_frsize / 8);
  return uint64_t{disk.f_bavail} * disk.f_frsize >= spare;
}

absl::Status SpoolJournal::ReleaseRoom() {
  const uint64_t end = begin();
  // Without a durable trim mark, entries in files that are gone would count as missing.
  TACHO_RETURN_IF_ERROR(Sync());
  TACHO_ASSIGN_OR_RETURN(const auto database, Use());
  return database->journal->DeleteTrimmedFiles(end);
}

absl::StatusOr<std::vector<SpoolJournal::Note>> SpoolJournal::ReadNotes(absl::string_view prefix) {
  TACHO_ASSIGN_OR_RETURN(const auto database, Use());

  const std::string start = absl::StrCat(kNotePrefix, prefix);
  std::vector<Note> notes;
  const std::unique_ptr<rocksdb::Iterator> it(database->db->NewIterator(rocksdb::ReadOptions()));
  for (it->Seek(start); it->Valid() && it->key().starts_with(start); it->Next()) {
    rocksdb::Slice key = it->key();
    key.remove_prefix(sizeof(kNotePrefix) - 1);
    notes.push_back({key.ToString(), it->value().ToString()});
  }
  if (!it->status().ok()) return SpoolStatus(it->status(), "read notes");
  return notes;
}

absl::StatusOr<std::vector<SpoolJournal::Entry>> SpoolJournal::Read(uint64_t position,
                                                                    uint64_t max_bytes) {
  TACHO_ASSIGN_OR_RETURN(const auto database, Use());

  std::vector<Entry> entries;
  uint64_t bytes = 0;
  bool full = false;
  absl::Status status =
      database->journal->Read(position, [&](uint64_t at, absl::string_view entry) -> absl::Status {
        full = !entries.empty() && bytes + entry.size() > max_bytes;
        if (full) return absl::CancelledError();
        bytes += entry.size();
        entries.push_back({at, std::string(entry)});
        return absl::OkStatus();
      });
  const bool damaged = absl::IsDataLoss(status);
  if (status.ok() || full || (damaged && !entries.empty())) return entries;
  return status;
}

}  // namespace tacho::storage

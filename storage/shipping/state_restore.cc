// The database is written without a log and flushed at the end. A file marks it as half made until
// then, so a crash leaves nothing that could be taken for a store.
#include "storage/shipping/state_restore.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/directory_check.h"
#include "storage/db/rocksdb_status.h"
#include "storage/journal/journal.h"
#include "storage/shipping/state_export.h"

namespace tacho::storage {
namespace {

constexpr char kImportDirectory[] = "bucket-import";
constexpr char kFencedPrefix[] = ".fenced-";
constexpr char kIndexFamily[] = "index";
constexpr char kStateFamily[] = "state";
constexpr char kEventsFamily[] = "events";

std::vector<std::string> NamesIn(rocksdb::Env* env, const std::string& path) {
  std::vector<std::string> names;
  env->GetChildren(path, &names).PermitUncheckedError();
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  return names;
}

// The database's own files, and the directories that a restore makes.
absl::Status RemoveDatabase(rocksdb::Env* env, const std::string& path) {
  const rocksdb::Status destroyed = rocksdb::DestroyDB(path, [env] {
    rocksdb::Options options;
    options.env = env;
    options.info_log = std::make_shared<SilentLogger>();
    return options;
  }());
  TACHO_RETURN_IF_ERROR(FromRocksDb(destroyed, absl::StrCat("remove what is in ", path)));
  const std::string import = absl::StrCat(path, "/", kImportDirectory);
  for (const std::string& name : NamesIn(env, import)) {
    env->DeleteFile(absl::StrCat(import, "/", name)).PermitUncheckedError();
  }
  env->DeleteDir(import).PermitUncheckedError();
  return absl::OkStatus();
}

rocksdb::ColumnFamilyOptions RestoredFamily() {
  rocksdb::ColumnFamilyOptions options;
  // The store opens it with its own options. Until then nothing is to be rewritten.
  options.disable_auto_compactions = true;
  return options;
}

}  // namespace

std::string EncodePositions(uint64_t unsealed_from) {
  std::string bytes;
  PutLe64(unsealed_from, &bytes);
  return bytes;
}

absl::StatusOr<uint64_t> DecodePositions(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t position = in.Le64();
  if (!in.AtEnd() || position == 0) {
    return absl::DataLossError("the manifest's positions are damaged");
  }
  return position;
}

absl::StatusOr<std::string> GetNamedFile(Bucket& bucket, const StoredFile& file,
                                         const BeforeRetry& before_retry) {
  TACHO_ASSIGN_OR_RETURN(StoredObject object, GetUntilAnswered(bucket, file.key, before_retry));
  const std::string& body = object.body;
  if (body.size() != file.bytes || ExtendCrc32c(0, body.data(), body.size()) != file.crc32c) {
    return absl::DataLossError(absl::StrCat(file.key, " is not what the manifest names"));
  }
  return std::move(object.body);
}

absl::Status MissingFile(absl::string_view key) {
  return absl::DataLossError(
      absl::StrCat(key, " is not in the bucket any more, and the manifest names it"));
}

absl::StatusOr<std::string> MoveAside(rocksdb::Env* env, const std::string& path,
                                      const std::vector<std::string>& kept) {
  std::string aside;
  for (int number = 1;; ++number) {
    aside = absl::StrCat(path, "/", kFencedPrefix, number);
    if (!env->FileExists(aside).ok()) break;
  }
  std::vector<std::string> names = NamesIn(env, path);
  // Without CURRENT the rest is no database: if a crash comes in between, the next start goes on.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "CURRENT"; });
  TACHO_RETURN_IF_ERROR(FromRocksDb(env->CreateDir(aside), absl::StrCat("make ", aside)));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, kFencedPrefix)) continue;
    if (std::find(kept.begin(), kept.end(), name) != kept.end()) continue;
    TACHO_RETURN_IF_ERROR(
        FromRocksDb(env->RenameFile(absl::StrCat(path, "/", name), absl::StrCat(aside, "/", name)),
                    absl::StrCat("move ", name, " into ", aside)));
  }
  return aside;
}

absl::StatusOr<std::unique_ptr<StateRestorer>> StateRestorer::Begin(Options options,
                                                                    const Manifest& manifest) {
  std::unique_ptr<StateRestorer> restorer(new StateRestorer(std::move(options)));
  TACHO_ASSIGN_OR_RETURN(restorer->unsealed_from_, DecodePositions(manifest.positions));
  TACHO_RETURN_IF_ERROR(restorer->Open());
  TACHO_RETURN_IF_ERROR(restorer->Import(manifest));
  return restorer;
}

StateRestorer::StateRestorer(Options options) : options_(std::move(options)) {}

StateRestorer::~StateRestorer() { Close(); }

void StateRestorer::Close() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  handles_.clear();
  db_.reset();
}

absl::Status StateRestorer::Open() {
  rocksdb::Env* const env = options_.env;
  const std::string& path = options_.path;
  TACHO_RETURN_IF_ERROR(FromRocksDb(env->CreateDirIfMissing(path), absl::StrCat("make ", path)));
  TACHO_RETURN_IF_ERROR(FromRocksDb(
      rocksdb::WriteStringToFile(env, "", absl::StrCat(path, "/", kHalfRestoredFile), true),
      absl::StrCat("write into ", path)));
  TACHO_RETURN_IF_ERROR(RemoveDatabase(env, path));
  rocksdb::Options open;
  open.env = env;
  open.create_if_missing = true;
  open.info_log = std::make_shared<SilentLogger>();
  open.atomic_flush = true;  // As the store has it.
  rocksdb::DB* opened = nullptr;
  TACHO_RETURN_IF_ERROR(FromRocksDb(rocksdb::DB::Open(open, path, &opened),
                                    absl::StrCat("make a database in ", path)));
  db_.reset(opened);
  return absl::OkStatus();
}

absl::Status StateRestorer::Download(const StoredFile& file, const std::string& path) const {
  const auto body = GetNamedFile(*options_.bucket, file, options_.before_retry);
  if (absl::IsNotFound(body.status())) return MissingFile(file.key);
  if (!body.ok()) return body.status();
  return FromRocksDb(rocksdb::WriteStringToFile(options_.env, *body, path, true),
                     absl::StrCat("write ", path));
}

absl::Status StateRestorer::Import(const Manifest& manifest) {
  const std::string directory = absl::StrCat(options_.path, "/", kImportDirectory);
  TACHO_RETURN_IF_ERROR(
      FromRocksDb(options_.env->CreateDirIfMissing(directory), absl::StrCat("make ", directory)));
  std::map<std::string, rocksdb::ExportImportFilesMetaData> families;
  for (const StateFile& file : manifest.state) {
    TACHO_ASSIGN_OR_RETURN(const StateTable table, DecodeStateMetadata(file.metadata));
    const bool known = table.family == kIndexFamily || table.family == kStateFamily ||
                       table.family == kEventsFamily || ParsePartitionName(table.family);
    if (!known) {
      return absl::DataLossError(
          absl::StrCat(file.file.key, " belongs to a column family that no store has"));
    }
    rocksdb::LiveFileMetaData one;
    one.column_family_name = table.family;
    one.level = table.level;
    one.name = absl::StrCat("/", table.number, ".sst");
    one.relative_filename = one.name.substr(1);
    one.db_path = directory;
    one.directory = directory;
    one.file_number = table.number;
    one.size = table.bytes;
    one.smallest_seqno = table.first_sequence;
    one.largest_seqno = table.last_sequence;
    one.smallestkey = table.first_key;
    one.largestkey = table.last_key;
    one.oldest_ancester_time = table.oldest_time;
    one.file_creation_time = table.file_time;
    TACHO_RETURN_IF_ERROR(Download(file.file, absl::StrCat(directory, one.name)));
    rocksdb::ExportImportFilesMetaData& family = families[table.family];
    family.db_comparator_name = table.comparator;
    family.files.push_back(std::move(one));
  }
  for (const auto& [name, metadata] : families) {
    rocksdb::ImportColumnFamilyOptions import;
    import.move_files = true;
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    TACHO_RETURN_IF_ERROR(FromRocksDb(
        db_->CreateColumnFamilyWithImport(RestoredFamily(), name, import, metadata, &handle),
        absl::StrCat("import '", name, "' from the bucket")));
    handles_.push_back(handle);
  }
  for (const char* name : {kJournalFamily, kIndexFamily, kStateFamily, kEventsFamily}) {
    if (Find(name) == nullptr) TACHO_RETURN_IF_ERROR(Create(name));
  }
  families_ = {.journal = Find(kJournalFamily),
               .index = Find(kIndexFamily),
               .state = Find(kStateFamily),
               .events = Find(kEventsFamily)};
  return absl::OkStatus();
}

absl::Status StateRestorer::Create(const std::string& name) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  TACHO_RETURN_IF_ERROR(FromRocksDb(db_->CreateColumnFamily(RestoredFamily(), name, &handle),
                                    absl::StrCat("make '", name, "'")));
  handles_.push_back(handle);
  return absl::OkStatus();
}

rocksdb::ColumnFamilyHandle* StateRestorer::Find(const std::string& name) const {
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    if (handle->GetName() == name) return handle;
  }
  return nullptr;
}

absl::Status StateRestorer::Apply(const Segment& segment) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::WriteBatch write;
  for (const std::string& record : segment.records) {
    const auto first = ApplyRecord(record, families_, &write);
    if (!first.ok()) {
      return absl::Status(first.status().code(),
                          absl::StrCat("segment ", segment.place.number, " of epoch ",
                                       segment.place.epoch, ": ", first.status().message()));
    }
    if (first_position_ == 0) first_position_ = *first;
  }
  return FromRocksDb(db_->Write(unlogged, &write), "apply a segment");
}

absl::Status StateRestorer::AddBlock(int64_t day, const StoredFile& block) {
  const std::string name = PartitionName(day);
  if (Find(name) == nullptr) TACHO_RETURN_IF_ERROR(Create(name));
  const std::string path = absl::StrCat(options_.path, "/", kImportDirectory, "/block.sst");
  TACHO_RETURN_IF_ERROR(Download(block, path));
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  ingest.write_global_seqno = false;  // The file stays as it is.
  return FromRocksDb(db_->IngestExternalFile(Find(name), {path}, ingest),
                     absl::StrCat("take in the block ", block.key));
}

absl::Status StateRestorer::Finish() {
  TACHO_CHECK(db_ != nullptr);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::WriteBatch write;
  // Entries below were sealed and are in no segment. Without any entry the positions go on where
  // the state says, so that none is given twice.
  const uint64_t begin =
      first_position_ == 0 ? unsealed_from_ : std::min(first_position_, unsealed_from_);
  if (first_position_ > unsealed_from_) {
    return absl::DataLossError(absl::StrCat("the log in the bucket begins at position ",
                                            first_position_, " of the journal, and is needed from ",
                                            unsealed_from_, " on"));
  }
  Journal::StageMark(families_.journal, begin, &write);
  write.Put("format", options_.format);
  if (options_.epoch != 0) write.Put(kRestoredAtKey, absl::StrCat(options_.epoch));
  TACHO_RETURN_IF_ERROR(FromRocksDb(db_->Write(unlogged, &write), "finish the restore"));
  std::vector<rocksdb::ColumnFamilyHandle*> all = handles_;
  all.push_back(db_->DefaultColumnFamily());
  TACHO_RETURN_IF_ERROR(
      FromRocksDb(db_->Flush(rocksdb::FlushOptions(), all), "write out the restored database"));
  Close();
  const std::string import = absl::StrCat(options_.path, "/", kImportDirectory);
  for (const std::string& name : NamesIn(options_.env, import)) {
    options_.env->DeleteFile(absl::StrCat(import, "/", name)).PermitUncheckedError();
  }
  options_.env->DeleteDir(import).PermitUncheckedError();
  return FromRocksDb(options_.env->DeleteFile(absl::StrCat(options_.path, "/", kHalfRestoredFile)),
                     "finish the restore");
}

}  // namespace tacho::storage

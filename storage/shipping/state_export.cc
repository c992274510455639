#include "storage/shipping/state_export.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/metadata.h"
#include "rocksdb/utilities/checkpoint.h"
#include "storage/codec/bytes.h"
#include "storage/db/rocksdb_status.h"
#include "storage/history/block_writer.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

constexpr uint64_t kMetadataFormat = 1;
constexpr uint64_t kMaxLevel = 64;

}  // namespace

std::string EncodeStateMetadata(const rocksdb::LiveFileMetaData& table,
                                absl::string_view comparator) {
  std::string bytes;
  PutVarint(kMetadataFormat, &bytes);
  PutString(table.column_family_name, &bytes);
  PutString(comparator, &bytes);
  for (const uint64_t number :
       {static_cast<uint64_t>(table.level), table.file_number, uint64_t{table.size},
        uint64_t{table.smallest_seqno}, uint64_t{table.largest_seqno}, table.oldest_ancester_time,
        table.file_creation_time}) {
    PutVarint(number, &bytes);
  }
  PutString(table.smallestkey, &bytes);
  PutString(table.largestkey, &bytes);
  return bytes;
}

absl::StatusOr<StateTable> DecodeStateMetadata(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t format = in.Varint();
  if (in.ok() && format != kMetadataFormat) {
    return absl::UnimplementedError(
        absl::StrCat("the metadata of a state file has format ", format,
                     ". Run the version that wrote it, or a later one."));
  }
  StateTable table;
  table.family = std::string(in.String());
  table.comparator = std::string(in.String());
  const uint64_t level = in.Varint();
  table.level = static_cast<int>(level);
  table.number = in.Varint();
  table.bytes = in.Varint();
  table.first_sequence = in.Varint();
  table.last_sequence = in.Varint();
  table.oldest_time = in.Varint();
  table.file_time = in.Varint();
  table.first_key = std::string(in.String());
  table.last_key = std::string(in.String());
  if (!in.AtEnd() || level > kMaxLevel || table.family.empty()) {
    return absl::DataLossError("the metadata of a state file is damaged");
  }
  return table;
}

StateExporter::StateExporter(Options options) : options_(std::move(options)) {
  TACHO_CHECK(options_.db != nullptr && options_.env != nullptr && options_.bucket != nullptr);
}

void StateExporter::Know(const std::vector<StateFile>& files) {
  for (const StateFile& file : files) uploaded_[file.metadata] = file.file;
}

void StateExporter::RemoveDirectory() const {
  // RocksDB exports into the second and renames it in the end.
  for (const std::string& directory :
       {options_.directory, absl::StrCat(options_.directory, ".tmp")}) {
    std::vector<std::string> names;
    options_.env->GetChildren(directory, &names).PermitUncheckedError();
    for (const std::string& name : names) {
      options_.env->DeleteFile(absl::StrCat(directory, "/", name)).PermitUncheckedError();
    }
    options_.env->DeleteDir(directory).PermitUncheckedError();
  }
}

absl::StatusOr<StoredFile> StateExporter::Upload(const std::string& path, const std::string& name) {
  std::string body;
  TACHO_RETURN_IF_ERROR(FromRocksDb(rocksdb::ReadFileToString(options_.env, path, &body),
                                    "read a table for the bucket"));
  StoredFile file{.key = StateFileKey(options_.shard, options_.epoch, name),
                  .bytes = body.size(),
                  .crc32c = ExtendCrc32c(0, body.data(), body.size())};
  TACHO_RETURN_IF_ERROR(PutObject(*options_.bucket, file.key, body, options_.before_retry));
  return file;
}

absl::Status StateExporter::ExportOne(rocksdb::ColumnFamilyHandle* family,
                                      std::vector<StateFile>* files) {
  RemoveDirectory();  // Of an export that a crash has cut short, or of the family before.
  rocksdb::Checkpoint* made = nullptr;
  TACHO_RETURN_IF_ERROR(
      FromRocksDb(rocksdb::Checkpoint::Create(options_.db, &made), "export a column family"));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::ExportImportFilesMetaData* raw = nullptr;
  const rocksdb::Status exported = checkpoint->ExportColumnFamily(family, options_.directory, &raw);
  const std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata(raw);
  TACHO_RETURN_IF_ERROR(FromRocksDb(exported, "export a column family"));
  for (rocksdb::LiveFileMetaData& table : metadata->files) {
    // The export leaves the name empty.
    table.column_family_name = family->GetName();
    std::string described = EncodeStateMetadata(table, metadata->db_comparator_name);
    const auto known = uploaded_.find(described);
    if (known == uploaded_.end()) {
      // Never the same name twice: a table that no manifest named for a while may have to be there
      // again while its first copy is about to be deleted.
      const std::string name =
          absl::StrCat(family->GetName(), "-", table.file_number, "-", ++uploads_);
      TACHO_ASSIGN_OR_RETURN(StoredFile file,
                             Upload(absl::StrCat(options_.directory, table.name), name));
      uploaded_[described] = file;
      files->push_back({.file = std::move(file), .metadata = std::move(described)});
      continue;
    }
    files->push_back({.file = known->second, .metadata = std::move(described)});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StateFile>> StateExporter::Export(
    const std::vector<rocksdb::ColumnFamilyHandle*>& families) {
  std::vector<StateFile> files;
  absl::Status status;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    status = ExportOne(family, &files);
    if (!status.ok()) break;
  }
  RemoveDirectory();
  if (!status.ok()) return status;
  // What is in no manifest soon is not exported again either.
  uploaded_.clear();
  Know(files);
  return files;
}

}  // namespace tacho::storage

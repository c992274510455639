// Copies column families into the bucket, as the tables that RocksDB has of them. A table never
// changes, so each goes there once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/manifest.h"
#include "storage/shard/retry.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
struct LiveFileMetaData;
}  // namespace rocksdb

namespace tacho::storage {

// The metadata of a state file: what the import needs to know of a table.
//
//   varint 1: the format | varint length and name of the column family | the same of the comparator
//   | varints: level, number, bytes, first and last sequence, time of the oldest ancestor, time of
//   the file | varint length and bytes: first key, last key
std::string EncodeStateMetadata(const rocksdb::LiveFileMetaData& table,
                                absl::string_view comparator);
struct StateTable {
  std::string family;
  std::string comparator;
  int level = 0;
  uint64_t number = 0;
  uint64_t bytes = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t oldest_time = 0;
  uint64_t file_time = 0;
  std::string first_key;
  std::string last_key;
};
// Reads bytes that may be anything.
//   UNIMPLEMENTED  a newer version of the program has written it.
//   DATA_LOSS      it is damaged.
absl::StatusOr<StateTable> DecodeStateMetadata(absl::string_view bytes);

// One thread.
class StateExporter {
 public:
  struct Options {
    rocksdb::DB* db = nullptr;  // Not owned, nor the other two.
    rocksdb::Env* env = nullptr;
    Bucket* bucket = nullptr;
    uint32_t shard = 0;
    uint64_t epoch = 0;
    std::string directory;  // For links to tables, on the database's file system; made anew.
    BeforeRetry before_retry;
  };
  explicit StateExporter(Options options);

  // These tables of this very database are in the bucket: none of them is uploaded again.
  void Know(const std::vector<StateFile>& files);

  // What the families hold at some moment each, in this order, as files that are in the bucket.
  // Writes out their memory.
  //   UNAVAILABLE, others  of the disk, the bucket or `before_retry`. What was uploaded is known,
  //                        and is garbage until a manifest names it.
  absl::StatusOr<std::vector<StateFile>> Export(
      const std::vector<rocksdb::ColumnFamilyHandle*>& families);

 private:
  absl::Status ExportOne(rocksdb::ColumnFamilyHandle* family, std::vector<StateFile>* files);
  absl::StatusOr<StoredFile> Upload(const std::string& path, const std::string& name);
  void RemoveDirectory() const;

  const Options options_;
  uint64_t uploads_ = 0;
  absl::flat_hash_map<std::string, StoredFile> uploaded_;  // By metadata.
};

}  // namespace tacho::storage

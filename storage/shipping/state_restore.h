// Makes a database of what the bucket has of a shard: imports the state files, applies the segments
// in order. The result is an ordinary directory for Store::Open().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/manifest.h"
#include "storage/shard/retry.h"
#include "storage/shard/segment.h"
#include "storage/shipping/shipped_batch.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
}  // namespace rocksdb

namespace tacho::storage {

// Manifest::positions of a shard whose bucket has a whole copy of the store: the position of the
// oldest entry of the journal that may not be sealed. 8 bytes, little-endian.
std::string EncodePositions(uint64_t unsealed_from);
//   DATA_LOSS  it is damaged.
absl::StatusOr<uint64_t> DecodePositions(absl::string_view bytes);

// Reads a file that a manifest or a list names, and compares it with what they say of it.
//   NOT_FOUND  there is no such object.
//   DATA_LOSS  it is another; the message names its key.
//   others     of the bucket or `before_retry`.
absl::StatusOr<std::string> GetNamedFile(Bucket& bucket, const StoredFile& file,
                                         const BeforeRetry& before_retry);
// For a file that a manifest still names and that was NOT_FOUND.
absl::Status MissingFile(absl::string_view key);

// Moves everything in the directory, except `kept`, into a directory in it, whose path it returns:
// `path`/.fenced-N, with the lowest N that is not there. The directory itself may be a mount point.
absl::StatusOr<std::string> MoveAside(rocksdb::Env* env, const std::string& path,
                                      const std::vector<std::string>& kept);

// In the column family "default": the epoch, decimal, in which the database was made of the bucket.
// Its sequences say nothing about the segments of older epochs.
inline constexpr char kRestoredAtKey[] = "restored";

// One thread.
class StateRestorer {
 public:
  struct Options {
    rocksdb::Env* env = nullptr;  // Not owned, nor the bucket.
    std::string path;             // Of the database. What a half restore has left there is removed.
    Bucket* bucket = nullptr;
    BeforeRetry before_retry;
    std::string format;  // The store's format version.
    // In which it is restored; noted under kRestoredAtKey. 0: nothing is noted. The store is one of
    // its own then, which the bucket's owner does not take for a copy.
    uint64_t epoch = 0;
  };
  // Downloads and imports the state files.
  //   DATA_LOSS  one is missing or damaged; the message names its key.
  //   others     of the bucket, the disk or `before_retry`. Begin again.
  static absl::StatusOr<std::unique_ptr<StateRestorer>> Begin(Options options,
                                                              const Manifest& manifest);
  ~StateRestorer();

  // The next segment, in the order of replay.
  absl::Status Apply(const Segment& segment);

  // Downloads a block, whose columns the disk then has in the column family of their day. The
  // blocks of a day may overlap: a key has the same value in all of them.
  //   DATA_LOSS  it is missing or damaged; the message names its key.
  absl::Status AddBlock(int64_t day, const StoredFile& block);

  // Writes everything out and closes the database. Only then it can be opened as a store.
  absl::Status Finish();

 private:
  explicit StateRestorer(Options options);

  absl::Status Open();
  absl::Status Import(const Manifest& manifest);
  absl::Status Download(const StoredFile& file, const std::string& path) const;
  absl::Status Create(const std::string& name);
  rocksdb::ColumnFamilyHandle* Find(const std::string& name) const;
  void Close();

  const Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  ShippedFamilies families_;
  uint64_t unsealed_from_ = 0;   // As the manifest says.
  uint64_t first_position_ = 0;  // Of the segments; 0: none.
};

}  // namespace tacho::storage

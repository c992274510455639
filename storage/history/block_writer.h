// Writes columns of a day into the bucket: SST files with the keys and values that a `day.N` has,
// see docs/storage_format.md.
//
// Keys are written once, for the position is part of them. So any set of blocks is a plain union:
// there are no levels, no deletions and no sequence numbers in them.
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

namespace rocksdb {
class Env;
class SstFileWriter;
}  // namespace rocksdb

namespace tacho::storage {

// Puts an object under a key that only this caller can choose: repeated while the bucket is
// UNAVAILABLE, until `before_retry` gives up. Errors of either.
absl::Status PutObject(Bucket& bucket, absl::string_view key, absl::string_view body,
                       const BeforeRetry& before_retry);

// One thread. A block is uploaded as soon as it is full, so memory holds one at a time.
class BlockWriter {
 public:
  struct Options {
    Bucket* bucket = nullptr;               // Not owned.
    std::function<std::string()> next_key;  // Of an object; never the same twice.
    BeforeRetry before_retry;               // Before a block is sent again.
    uint64_t max_bytes = 64u << 20;         // Of a block: one request each, no upload in parts.
  };
  explicit BlockWriter(Options options);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Keys ascend.
  //   INVALID_ARGUMENT  this one does not.
  //   others            as the bucket, or `before_retry`, returned them. Begin again with another
  //                     writer; what was uploaded is garbage.
  absl::Status Add(absl::string_view key, absl::string_view value);

  // Uploads what is left. Returns the blocks in the order of their keys; none if nothing was added.
  // Errors as Add().
  absl::StatusOr<std::vector<Block>> Finish();

 private:
  class Memory;

  void Begin();
  absl::Status Upload();

  const Options options_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;  // Null: no block is begun.
  uint64_t filled_ = 0;  // Bytes of keys and values in it. The index takes less than a 64th.
  std::string first_key_;
  std::string last_key_;
  std::vector<Block> blocks_;
};

}  // namespace tacho::storage

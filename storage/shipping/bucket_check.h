// Looks whether a bucket has all that the manifest of a shard names, and whether it can be read.
// Reads only, also while an owner goes on writing: what an owner has replaced since is no fault.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/log_reader.h"
#include "storage/shard/retry.h"

namespace tacho::storage {

struct BucketCheckOptions {
  Bucket* bucket = nullptr;  // Not owned.
  uint32_t shard = 0;
  BeforeRetry before_retry;
  // Reads all blocks and compares their checksums, keys and columns; and all tables of the state.
  // Else of a block only that it is there, with the right size.
  bool deep = false;
  std::function<void(absl::string_view)> log;  // One line of progress. May be null.
};

struct FoundFault {
  std::string key;
  std::string what;  // A sentence that names the key.
};

struct BucketChecked {
  std::string owner;  // As the manifest says.
  uint64_t epoch = 0;
  uint64_t version = 0;
  bool has_copy = false;  // The bucket has a whole store, and not only old days of one.
  std::vector<LogExtent> logs;
  uint64_t segments = 0;
  uint64_t state_files = 0;
  uint64_t days = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;  // Of state files, lists and blocks, as the manifest and the lists say.
  std::vector<FoundFault> faults;
};

//   NOT_FOUND            the bucket has no manifest of this shard.
//   DATA_LOSS            the manifest itself is damaged.
//   UNIMPLEMENTED        a newer version of the program has written the manifest.
//   UNAVAILABLE, others  of the bucket or `before_retry`: whether there are faults is not known.
absl::StatusOr<BucketChecked> CheckBucket(const BucketCheckOptions& options);

}  // namespace tacho::storage

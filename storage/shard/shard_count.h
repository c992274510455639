// How many stores share a bucket. Jobs belong to shards by their number, so that a store of three
// must not go on where four were, or where one has kept all jobs. The object `v1/cluster` says the
// number; the first store of a cluster creates it, and it is never replaced. A store that has a
// bucket alone creates none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/retry.h"

namespace tacho::storage {

// The object's text; docs/bucket_format.md describes it.
std::string EncodeShardCount(uint32_t shards);
//   UNIMPLEMENTED  a newer version of the program has written it: upgrade this one.
//   DATA_LOSS      it is damaged.
absl::StatusOr<uint32_t> DecodeShardCount(absl::string_view text);

// Before a store of `shards` claims its shard, or begins one. Repeats what is not answered.
//   FAILED_PRECONDITION  the bucket is that of a cluster of another size, or of a store without a
//                        cluster; the message says what to do. Nothing was changed.
//   others               as DecodeShardCount(), of the bucket, or of `before_retry`.
absl::Status CheckShardCount(Bucket& bucket, uint32_t shards, const BeforeRetry& before_retry);

}  // namespace tacho::storage

// What may be deleted from a shard's part of the bucket. Nothing else may:
//
//   - what a commit has made superfluous, once that commit is known to have succeeded
//     (Committed::garbage);
//   - objects with the epoch of an older owner in their names that no manifest names. They can
//   never
//     be named again, because an older owner cannot commit. FindOrphans() finds them.
//
// Orphans of the owner's own epoch wait for the next owner: an upload may be about to be named.
// Seals are never deleted. A stopped owner that wakes after years must find the one that stops it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/manifest.h"
#include "storage/shard/retry.h"

namespace tacho::storage {

// The keys of all files that a manifest names: state files, blocks of open days, and lists. The
// blocks of closed days are in the lists.
std::set<std::string> FilesOf(const Manifest& manifest);

// The files that `before` needs and `after` does not, where `after` has replaced `before`. Reads
// the lists of days that the two do not agree on. If that fails, the blocks of such a day are left
// out: they are garbage for a later owner.
std::vector<std::string> SupersededFiles(Bucket& bucket, const Manifest& before,
                                         const Manifest& after, const BeforeRetry& before_retry);

// The keys below the shard's prefix that are garbage by the second rule, in their order. Reads the
// lists of closed days, too, and looks at each segment that is left over. Files that the manifests
// saved on `saved_days` need are no garbage: name all days that may be restored, whether there is a
// manifest or not, because a listing may leave one out. A reader may still use the manifest of an
// older owner, so delete what two sweeps, a day apart, have both found.
//   DATA_LOSS, UNIMPLEMENTED  a saved manifest or a list cannot be read, so nobody knows what it
//                             needs. Nothing is garbage then.
//   others                    of the bucket, or of `before_retry`.
absl::StatusOr<std::vector<std::string>> FindOrphans(Bucket& bucket, const Manifest& current,
                                                     const std::vector<int64_t>& saved_days,
                                                     const BeforeRetry& before_retry);

// Deletes the objects, as far as the bucket does; returns how many it has deleted. The others are
// garbage still.
size_t DeleteObjects(Bucket& bucket, const std::vector<std::string>& keys);

}  // namespace tacho::storage

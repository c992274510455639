// How a process becomes the owner of a shard. Two steps, in this order:
//
//   1. ClaimShard() writes its epoch into the manifest. From then on no older owner can commit, so
//      none can trim its log or delete a file that the manifest names.
//   2. SealOlderLogs() walks each older log to its end and seals it there. From then on no older
//      owner can acknowledge anything.
//
// Only then does the new owner restore from the manifest and from what step 2 has found, and serve.
// The other order loses rows: an end of a log that was looked up before the claim may lie below
// what the older owner has trimmed since, so it goes on behind the seal.
//
// No clock takes part. Who may become owner, and when, is decided elsewhere: two who try at once
// get different epochs or one of them fails, and the higher one wins.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/retry.h"
#include "storage/shard/segment.h"

namespace tacho::storage {

// Writes `epoch` and `owner` into the manifest, and adds the log of that epoch. Creates the
// manifest of a shard that has none. Without an epoch it takes the one after the manifest's: for a
// collector that nobody else hands epochs to. Returns the manifest as it was written.
//   ABORTED  the manifest has this epoch or a newer one. The message names its owner. Look at the
//            map: somebody else is meant to own this shard.
//   others   as ManifestObject. The claim may have happened; claim again with a higher epoch.
absl::StatusOr<ReadManifest> ClaimShard(const ManifestObject& object, std::optional<uint64_t> epoch,
                                        absl::string_view owner);

// A log that has ended: its segments are `first` to `seal` - 1, and the seal has the number `seal`.
struct SealedLog {
  uint64_t epoch = 0;
  uint64_t first = 0;
  uint64_t seal = 0;
};

// Gets each segment of the older logs, in the order of replay. An error ends the walk.
using SegmentVisitor = std::function<absl::Status(Segment)>;

// Seals all logs of `claimed`, which ClaimShard() has returned, except its owner's own. Returns
// where they end: CommitManifest() needs it. Repeating it does no harm.
//   UNIMPLEMENTED, DATA_LOSS  a segment cannot be read. The message names its key. The shard cannot
//                             be served without what is in it.
//   others                    of the bucket, of `before_retry`, or of the visitor.
absl::StatusOr<std::vector<SealedLog>> SealOlderLogs(const ManifestObject& object,
                                                     const Manifest& claimed,
                                                     const SegmentVisitor& visit);

}  // namespace tacho::storage

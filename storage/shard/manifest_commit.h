// A commit: what the owner has exported and uploaded becomes valid, and the part of the log that it
// covers is no longer needed. The order is
//
//   1. export the state and upload it;
//   2. cut blocks of everything that is sealed by then and upload them: blocks may hold more than
//   the
//      state knows, never less;
//   3. wait until the log is stored up to the newest row that is in either. The state knows which
//      rows of each agent were taken in. If one of them were in neither the log nor a block, the
//      next owner would tell the agent that it is there. And the next owner would give the position
//      of a row that is only in a block to another row;
//   4. replace the manifest.
//
// What a commit makes superfluous is told only once the commit is known to have succeeded. Before,
// somebody may still restore from the manifest that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/shard_log.h"
#include "storage/shard/takeover.h"

namespace tacho::storage {

struct CommitRequest {
  // The replay begins here from now on: the oldest segment with an entry that the exported state
  // does not cover. Older logs than that of its epoch are left out of the manifest.
  LogStart replay_from;
  // The segment of this owner's log with the newest row in the exported state or in the blocks; 0:
  // no row is newer than the older logs. It must be stored.
  uint64_t stored_through = 0;
  // From SealOlderLogs(): where the older logs end. Empty for an owner that found none.
  std::vector<SealedLog> sealed;
  // Changes the state, days, positions and what retention keeps. It gets the manifest that is
  // there, and may be called again for a later one. Shard, epoch, owner and logs are not its
  // business.
  std::function<absl::Status(Manifest*)> change;
};

struct Committed {
  ReadManifest written;
  // The keys of segments below the new start, and of files that the manifest named before and does
  // not name now. Nobody needs them any more, except readers that still have the manifest before:
  // delete them an hour later, by DeleteObjects(). Seals are never among them.
  std::vector<std::string> garbage;
};

// Replaces the manifest, for the owner whose log this is.
//   ABORTED           a newer owner has claimed the shard. The log is fenced now: end the streams,
//                     close the store, look at the map.
//   INVALID_ARGUMENT  `replay_from` is in no log of the manifest, or above what is stored, or the
//   log
//                     is not stored as far as `stored_through`. Nothing was sent.
//   others            of `change`, or as ManifestObject::Replace(). Commit again; what this one has
//                     made superfluous may stay until a later owner sweeps.
absl::StatusOr<Committed> CommitManifest(const ManifestObject& object, ShardLog& log,
                                         const CommitRequest& request);

}  // namespace tacho::storage

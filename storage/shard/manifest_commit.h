// A commit: what the owner has exported and uploaded becomes valid, and the part of the log that it
// covers is no longer needed. The uploads must be complete, and those of the state must be older
// than those of the blocks: blocks may hold more than the state knows, never less.
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
//   INVALID_ARGUMENT  `replay_from` is in no log of the manifest, or above what is stored. Nothing
//                     was sent.
//   others            of `change`, or as ManifestObject::Replace(). Commit again; what this one has
//                     made superfluous may stay until a later owner sweeps.
absl::StatusOr<Committed> CommitManifest(const ManifestObject& object, ShardLog& log,
                                         const CommitRequest& request);

}  // namespace tacho::storage

// Mistakes that a cluster's protocol can have. The simulation makes one if it is told to, beside
// the protocol's classes or between them and the bucket, and must find what it breaks.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace tacho::cluster {

enum class Planted {
  kNone,
  kAckEarly,               // Acknowledges what is handed over and not stored.
  kAckOutOfOrder,          // Acknowledges a segment although one before it is not stored.
  kExistsIsSuccess,        // Believes that any object under the number is its own.
  kRereadTakesAny,         // Reads the object again, and does not compare it.
  kRetryOtherContent,      // Sends other rows under a number that was sent before.
  kLostIsFailed,           // Gives a number up after a lost answer, and sends its rows again.
  kManifestUnconditional,  // Replaces the manifest whatever is there.
  kManifestNonceRepeats,   // Cannot tell its own manifest from another's.
  kTrimFirst,              // Deletes what a commit covers before the commit.
  kTrimUnknown,            // Takes a commit of unknown outcome for one that succeeded.
  kSealCollected,          // Deletes the seal with its log.
  kNoSeal,                 // Does not seal.
  kSlotBeforeEpoch,        // Looks where the older log ends before it claims the shard.
  kServeBeforeSeal,        // Serves before the older logs are sealed and replayed.
  kSealedPositionInLog,    // Ships what is sealed, whose blocks come with the manifest only.
  kBlocksBeforeState,      // Cuts the blocks before it exports the state.
  kStateNotStored,         // Commits before the log has what the state and the blocks know.
  kWelcomeFromLocal,       // Tells agents what it has, not what is stored.
  kListsNotRead,           // Deletes blocks that only the list of a closed day names.
  kOwnOrphansCollected,    // Deletes uploads of its own epoch that are not named yet.
};

struct PlantedName {
  Planted planted;
  absl::string_view name;
};

inline constexpr PlantedName kAllPlanted[] = {
    {Planted::kAckEarly, "ack_early"},
    {Planted::kAckOutOfOrder, "ack_out_of_order"},
    {Planted::kExistsIsSuccess, "exists_is_success"},
    {Planted::kRereadTakesAny, "reread_takes_any"},
    {Planted::kRetryOtherContent, "retry_other_content"},
    {Planted::kLostIsFailed, "lost_is_failed"},
    {Planted::kManifestUnconditional, "manifest_unconditional"},
    {Planted::kManifestNonceRepeats, "manifest_nonce_repeats"},
    {Planted::kTrimFirst, "trim_first"},
    {Planted::kTrimUnknown, "trim_unknown"},
    {Planted::kSealCollected, "seal_collected"},
    {Planted::kNoSeal, "no_seal"},
    {Planted::kSlotBeforeEpoch, "slot_before_epoch"},
    {Planted::kServeBeforeSeal, "serve_before_seal"},
    {Planted::kSealedPositionInLog, "sealed_position_in_log"},
    {Planted::kBlocksBeforeState, "blocks_before_state"},
    {Planted::kStateNotStored, "state_not_stored"},
    {Planted::kWelcomeFromLocal, "welcome_from_local"},
    {Planted::kListsNotRead, "lists_not_read"},
    {Planted::kOwnOrphansCollected, "own_orphans_collected"},
};

inline std::optional<Planted> PlantedOf(absl::string_view name) {
  for (const PlantedName& known : kAllPlanted) {
    if (known.name == name) return known.planted;
  }
  return std::nullopt;
}

}  // namespace tacho::cluster

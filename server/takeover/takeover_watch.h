// Decides which shards have lost their owner. It only judges what was seen in the bucket and when,
// by this machine's monotonic clock: other clocks do not matter, and a wrong judgement costs a
// takeover and loses nothing (storage/shard/takeover.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "storage/shard/heartbeat.h"
#include "storage/shard/owner_map.h"

namespace tacho::server::takeover {

struct VacantShard {
  uint32_t shard = 0;
  std::string owner;  // As the map has it. Empty: none.
  // The owner has ended in good order. Otherwise it is silent, or the shard never had one.
  bool released = false;
};

// For one thread.
class TakeoverWatch {
 public:
  // An owner must have been silent for so many looks, besides the time.
  static constexpr int kLeastLooks = 3;

  TakeoverWatch(uint32_t shards, absl::Duration takeover_after)
      : shards_(shards), takeover_after_(takeover_after) {}

  // What the bucket has now: the map, and the signs of life of its owners by address. An owner that
  // has left none is missing in `beats`.
  void NoteLook(absl::Time now, const storage::OwnerMap& map,
                const std::map<std::string, storage::Heartbeat>& beats);
  // The bucket did not answer. Owners could not write either, so their silence begins anew.
  void NoteNoLook() { seen_.clear(); }

  // Shards that anybody may take now, those that were released first.
  std::vector<VacantShard> Vacant(absl::Time now) const;

 private:
  struct Seen {
    bool has_owner = false;
    std::string owner;
    bool has_beat = false;
    uint64_t life = 0;
    uint64_t count = 0;
    absl::Time since;  // When a look first saw it as it is.
    int looks = 0;
  };

  const uint32_t shards_;
  const absl::Duration takeover_after_;
  std::map<uint32_t, Seen> seen_;
};

}  // namespace tacho::server::takeover

#include "server/takeover/takeover_watch.h"

#include <algorithm>

namespace tacho::server::takeover {

void TakeoverWatch::NoteLook(absl::Time now, const storage::OwnerMap& map,
                             const std::map<std::string, storage::Heartbeat>& beats) {
  for (uint32_t shard = 0; shard < shards_; ++shard) {
    Seen next;
    if (const auto owner = map.owners.find(shard); owner != map.owners.end()) {
      next.has_owner = true;
      next.owner = owner->second;
    }
    if (const auto beat = beats.find(next.owner); beat != beats.end()) {
      next.has_beat = true;
      next.life = beat->second.life;
      next.count = beat->second.count;
    }
    const auto [known, is_new] = seen_.try_emplace(shard);
    Seen& seen = known->second;
    const bool same = !is_new && seen.has_owner == next.has_owner && seen.owner == next.owner &&
                      seen.has_beat == next.has_beat && seen.life == next.life &&
                      seen.count == next.count;
    next.since = same ? seen.since : now;
    next.looks = same ? seen.looks + 1 : 1;
    seen = next;
  }
}

std::vector<VacantShard> TakeoverWatch::Vacant(absl::Time now) const {
  std::vector<VacantShard> vacant;
  for (const auto& [shard, seen] : seen_) {
    const bool released = seen.has_owner && seen.owner.empty();
    const bool silent = seen.looks >= kLeastLooks && now - seen.since >= takeover_after_;
    if (released || silent) vacant.push_back({shard, seen.owner, released});
  }
  std::stable_partition(vacant.begin(), vacant.end(),
                        [](const VacantShard& one) { return one.released; });
  return vacant;
}

}  // namespace tacho::server::takeover

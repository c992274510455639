#include "server/cluster/asking/forward_watch.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/cluster/asking/forward_merge.h"
#include "server/cluster/asking/merged_watch.h"

namespace tacho::server::cluster {

grpc::ServerWriteReactor<v1::WatchConditionsResponse>* WatchAllConditions(
    ForwardCalls* calls, const Asker& asker, const v1::WatchConditionsRequest& request) {
  const Membership& membership = calls->membership();
  const auto adapt = [&membership, not_live = membership.shards()](
                         uint32_t shard, v1::WatchConditionsResponse* message) mutable {
    auto* const conditions = message->mutable_conditions();
    const auto kept = std::remove_if(
        conditions->begin(), conditions->end(),
        [&](const v1::Condition& one) { return !SpeaksFor(membership, shard, one); });
    conditions->erase(kept, conditions->end());
    if (message->live()) message->set_live(--not_live == 0);
    return true;
  };
  std::vector<v1::WatchConditionsRequest> requests(membership.shards(), request);
  return new MergedWatch<v1::WatchConditionsRequest, v1::WatchConditionsResponse>(
      calls, asker, "/tacho.v1.Query/WatchConditions", std::move(requests), adapt);
}

grpc::ServerWriteReactor<v1::WatchResponse>* WatchParts(ForwardCalls* calls, const Asker& asker,
                                                        std::vector<v1::WatchRequest> requests) {
  const Membership& membership = calls->membership();
  using Numbers = absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t>;
  const auto adapt = [own = membership.own(), not_live = membership.shards(), numbers = Numbers()](
                         uint32_t shard, v1::WatchResponse* message) mutable {
    const auto renumber = [&](auto* part) {
      const auto next = static_cast<uint32_t>(numbers.size());
      part->set_index(numbers.try_emplace({shard, part->index()}, next).first->second);
    };
    if (message->has_series()) renumber(message->mutable_series());
    if (message->has_samples()) renumber(message->mutable_samples());
    if (message->has_live()) return --not_live == 0;
    return !message->has_alive() || (shard == own && not_live == 0);
  };
  return new MergedWatch<v1::WatchRequest, v1::WatchResponse>(calls, asker, "/tacho.v1.Query/Watch",
                                                              std::move(requests), adapt);
}

}  // namespace tacho::server::cluster

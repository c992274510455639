// Watches in a cluster that all members answer together.
#pragma once

#include <vector>

#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::server::cluster {

// Query.WatchConditions of all jobs, or of a split one: each member's, of what it keeps. It is
// `live` once all members are.
grpc::ServerWriteReactor<v1::WatchConditionsResponse>* WatchAllConditions(
    ForwardCalls* calls, const Asker& asker, const v1::WatchConditionsRequest& request);

// Query.Watch of a split job. Series get their numbers in the order in which they come. Of events,
// history comes in order from each member, and not from all. It is `live` once all members are.
// `requests` by shard.
grpc::ServerWriteReactor<v1::WatchResponse>* WatchParts(ForwardCalls* calls, const Asker& asker,
                                                        std::vector<v1::WatchRequest> requests);

}  // namespace tacho::server::cluster

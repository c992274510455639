// The other members of the cluster, for parts of requests about jobs that they keep.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "server/interop/passing/sender.h"
#include "server/interop/passing/write_outcome.h"
#include "tacho/v1/member_writes.pb.h"

namespace tacho::server::interop {

// Thread-safe. Each `done` is called once: perhaps before the call returns, perhaps on a thread of
// gRPC. `sender` of a request is filled in here.
class Elsewhere {
 public:
  using Done = std::function<void(WriteOutcome)>;
  using PushDone = std::function<void(absl::StatusOr<v1::PushResponse>)>;

  virtual ~Elsewhere() = default;
  // Whether the others would know who the sender is. What they refuse to one that they do not know
  // is better refused at once.
  virtual bool CanPass(const Sender& sender) const = 0;
  // The member that keeps `shard` stores the part. Statuses are those of WriteOutcome; UNAVAILABLE
  // if that member cannot be reached, or does not keep the shard any more.
  virtual void StoreSeries(uint32_t shard, const Sender& sender, v1::StoreSeriesRequest request,
                           Done done) = 0;
  virtual void StoreEvents(uint32_t shard, const Sender& sender, v1::StoreEventsRequest request,
                           Done done) = 0;
  virtual void Push(uint32_t shard, const Sender& sender, v1::PushRequest request,
                    PushDone done) = 0;
};

}  // namespace tacho::server::interop

// What the other members of a cluster have of what a tool asks for. Whoever knows the way to them
// implements it (server/cluster/asking/forward_reads.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/cluster/membership.h"
#include "server/security/access_control.h"
#include "tacho/v1/member_reads.pb.h"

namespace tacho::server::promread {

// The messages of one member's answer. One thread at a time.
template <typename Response>
class MemberAnswer {
 public:
  virtual ~MemberAnswer() = default;
  // False: that was all. Waits for the member.
  //   as tacho.v1.MemberReads has it; UNAVAILABLE, too, if the member is not reached or does not
  //   keep the shard any more.
  virtual absl::StatusOr<bool> Next(Response* response) = 0;
};

template <typename Response>
using MemberAnswers = std::vector<std::unique_ptr<MemberAnswer<Response>>>;

// The caller, and the time at which its query ends.
struct Reader {
  const security::Credentials& shown;
  absl::Time deadline;  // By MonotonicNow().
};

// Thread-safe.
class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  // Asks the owners of these shards, which are others than this collector's, in ascending order.
  //   UNAUTHENTICATED    the reader is unknown.
  //   PERMISSION_DENIED  the reader shows a client certificate alone, which cannot be passed on.
  //   UNAVAILABLE        the collector drains.
  virtual absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> Read(
      const Reader& reader, const v1::MemberReadRequest& request,
      const std::vector<uint32_t>& shards) = 0;
  virtual absl::StatusOr<MemberAnswers<v1::MemberListResponse>> List(
      const Reader& reader, const v1::MemberListRequest& request,
      const std::vector<uint32_t>& shards) = 0;
};

// The other members of the cluster.
struct Members {
  const cluster::Membership* membership = nullptr;  // Null: there is no cluster.
  Elsewhere* elsewhere = nullptr;                   // Null as well then.
};

}  // namespace tacho::server::promread

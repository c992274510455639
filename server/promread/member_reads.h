// tacho.v1.MemberReads: what this collector's shard has of what tools ask other members.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/cluster/membership.h"
#include "server/promread/read_queue.h"
#include "server/query/query_service.h"
#include "tacho/v1/member_reads.grpc.pb.h"

namespace tacho::server::promread {

// Thread-safe. A call is a query: it needs the role read, sees the jobs of its caller, takes one of
// query.max_concurrent workers, ends at query.timeout, and is drained and counted by `queries` as
// "member.Read" and "member.List". Reads take a quarter of the workers at most, and wait for each
// other. They need nothing of other members, and readers that do take half of the workers: so those
// that wait for each other always end.
class MemberReads final : public v1::MemberReads::CallbackService {
 public:
  // Neither is owned; both must outlive the service, as it must outlive the Drain() of `queries`.
  MemberReads(query::QueryService* queries, const cluster::Membership* membership);

  grpc::ServerWriteReactor<v1::MemberReadResponse>* Read(
      grpc::CallbackServerContext* context, const v1::MemberReadRequest* request) override;
  grpc::ServerWriteReactor<v1::MemberListResponse>* List(
      grpc::CallbackServerContext* context, const v1::MemberListRequest* request) override;

 private:
  class ReadCall;

  // FAILED_PRECONDITION (MISDIRECTED): another member keeps the shard.
  absl::Status CheckShard(uint32_t shard) const;
  absl::StatusOr<security::RightsPtr> Admit(const char* method,
                                            const grpc::CallbackServerContext& context,
                                            uint32_t shard);

  query::QueryService* const queries_;
  const cluster::Membership* const membership_;
  ReadQueue reads_;
};

}  // namespace tacho::server::promread

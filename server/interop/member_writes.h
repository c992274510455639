// tacho.v1.MemberWrites: stores what other members of the cluster pass on to this one.
#pragma once

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/http/http_guard.h"
#include "server/interop/intake.h"
#include "server/interop/push_door.h"
#include "server/security/rights.h"
#include "tacho/v1/member_writes.grpc.pb.h"

namespace tacho::server::interop {

struct MemberWritesOptions {
  Intake* intake = nullptr;  // Not owned.
  PushDoor* push = nullptr;  // Not owned. Null: pushes are not taken.
  http::HttpGuard guard;
};

// Thread-safe. A call needs the role write. Must outlive the server.
class MemberWrites final : public v1::MemberWrites::CallbackService {
 public:
  explicit MemberWrites(MemberWritesOptions options);

  grpc::ServerReadReactor<v1::StoreSeriesRequest>* StoreSeries(grpc::CallbackServerContext* context,
                                                               v1::StoreOutcome* answer) override;
  grpc::ServerReadReactor<v1::StoreEventsRequest>* StoreEvents(grpc::CallbackServerContext* context,
                                                               v1::StoreOutcome* answer) override;
  grpc::ServerReadReactor<v1::PushRequest>* Push(grpc::CallbackServerContext* context,
                                                 v1::PushResponse* answer) override;

 private:
  // A call whose message `store` gets, with its sender and what answers the call.
  template <typename Request, typename Answer>
  class Call;

  //   UNAUTHENTICATED, PERMISSION_DENIED  as security::AdmitCall().
  //   UNAVAILABLE                         as Intake::CheckOpen().
  absl::StatusOr<security::RightsPtr> Admit(const grpc::CallbackServerContext& context) const;

  const MemberWritesOptions options_;
};

}  // namespace tacho::server::interop

// The stream of one member about its part of a split job, read by a thread that may wait.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/cluster/split/part_source.h"
#include "server/errors/grpc_status.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::server::cluster {

template <typename Request, typename Response>
using QueryMethod = std::unique_ptr<grpc::ClientReader<Response>> (v1::Query::Stub::*)(
    grpc::ClientContext*, const Request&);

template <typename Request, typename Response>
class MemberPart final : public PartSource<Response> {
 public:
  // Begins the call.
  MemberPart(ForwardCalls* calls, uint32_t shard, const Asker& asker,
             QueryMethod<Request, Response> method, const Request& request)
      : call_(calls, shard, asker),
        stub_(v1::Query::NewStub(call_.channel())),
        reader_((stub_.get()->*method)(call_.context(), request)) {}
  ~MemberPart() override {
    if (ended_) return;
    call_.Cancel();
    call_.Ended(reader_->Finish());
  }

  absl::StatusOr<bool> Next(Response* response) override {
    if (!ended_ && reader_->Read(response)) return true;
    if (!std::exchange(ended_, true))
      status_ = errors::FromGrpcStatus(call_.Ended(reader_->Finish()));
    if (status_.ok() || absl::IsNotFound(status_)) return false;
    return status_;
  }
  absl::Status not_found() const override {
    return absl::IsNotFound(status_) ? status_ : absl::OkStatus();
  }

 private:
  ForwardCalls::Call call_;
  const std::unique_ptr<v1::Query::Stub> stub_;
  const std::unique_ptr<grpc::ClientReader<Response>> reader_;
  bool ended_ = false;
  absl::Status status_;
};

// One for each member, or for `only` one. `requests` by shard.
template <typename Request, typename Response>
PartSources<Response> AskParts(ForwardCalls* calls, const Asker& asker,
                               QueryMethod<Request, Response> method,
                               const std::vector<Request>& requests, std::optional<uint32_t> only) {
  PartSources<Response> parts;
  for (uint32_t shard = 0; shard < requests.size(); ++shard) {
    if (only.has_value() && shard != *only) continue;
    parts.push_back(std::make_unique<MemberPart<Request, Response>>(calls, shard, asker, method,
                                                                    requests[shard]));
  }
  return parts;
}

}  // namespace tacho::server::cluster

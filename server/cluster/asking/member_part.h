// Streams of members, read by a thread that may wait; and what one says about its part of a split
// job.
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

// One call of a service, as v1::Query. One thread at a time.
template <typename Service, typename Request, typename Response>
class MemberStream {
 public:
  using Method = std::unique_ptr<grpc::ClientReader<Response>> (Service::Stub::*)(
      grpc::ClientContext*, const Request&);

  // Begins the call.
  MemberStream(ForwardCalls* calls, uint32_t shard, const Asker& asker, Method method,
               const Request& request)
      : call_(calls, shard, asker),
        stub_(Service::NewStub(call_.channel())),
        reader_((stub_.get()->*method)(call_.context(), request)) {}
  // Cancels a call that has not ended.
  ~MemberStream() {
    if (ended_) return;
    call_.Cancel();
    call_.Ended(reader_->Finish());
  }

  // Waits for the headers of the answer, or its end.
  void AwaitHeaders() { reader_->WaitForInitialMetadata(); }
  // False: the call has ended with status().
  bool Read(Response* response) {
    if (ended_) return false;
    if (reader_->Read(response)) return true;
    ended_ = true;
    status_ = call_.Ended(reader_->Finish());
    return false;
  }
  const grpc::Status& status() const { return status_; }

 private:
  ForwardCalls::Call call_;
  const std::unique_ptr<typename Service::Stub> stub_;
  const std::unique_ptr<grpc::ClientReader<Response>> reader_;
  bool ended_ = false;
  grpc::Status status_;
};

template <typename Request, typename Response>
class MemberPart final : public PartSource<Response> {
 public:
  // Begins the call.
  MemberPart(ForwardCalls* calls, uint32_t shard, const Asker& asker,
             QueryMethod<Request, Response> method, const Request& request)
      : stream_(calls, shard, asker, method, request) {}

  absl::StatusOr<bool> Next(Response* response) override {
    if (stream_.Read(response)) return true;
    absl::Status status = errors::FromGrpcStatus(stream_.status());
    if (status.ok() || absl::IsNotFound(status)) return false;
    return status;
  }
  absl::Status not_found() const override {
    absl::Status status = errors::FromGrpcStatus(stream_.status());
    return absl::IsNotFound(status) ? status : absl::OkStatus();
  }

 private:
  MemberStream<v1::Query, Request, Response> stream_;
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

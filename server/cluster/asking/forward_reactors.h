// Calls of this collector's server that members of the cluster answer: one of them, or all.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/errors/grpc_status.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

// A call with one answer. The reactors of this file delete themselves when gRPC is done with them,
// which is after the member's call has ended. `request` and `response` are those of gRPC's call.
template <typename Request, typename Response>
class ForwardedUnary final : public grpc::ServerUnaryReactor {
 public:
  ForwardedUnary(ForwardCalls* calls, uint32_t shard, const Asker& asker, const char* method,
                 const Request* request, Response* response)
      : call_(calls, shard, asker) {
    grpc::TemplatedGenericStub<Request, Response>(call_.channel())
        .UnaryCall(call_.context(), method, grpc::StubOptions(), request, response,
                   [this](const grpc::Status& status) { Finish(call_.Ended(status)); });
  }

  void OnCancel() override { call_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  ForwardCalls::Call call_;
};

// A call with many answers. The next one is read when the one before has left, so that a client
// that reads slowly slows down the member that answers.
template <typename Request, typename Response>
class ForwardedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  ForwardedStream(ForwardCalls* calls, uint32_t shard, const Asker& asker, const char* method,
                  const Request* request)
      : call_(calls, shard, asker), from_(this) {
    grpc::TemplatedGenericStub<Request, Response>(call_.channel())
        .PrepareBidiStreamingCall(call_.context(), method, grpc::StubOptions(), &from_);
    from_.AddHold();  // Reads begin outside of its reactions, too.
    from_.StartWriteLast(request, grpc::WriteOptions());
    from_.StartRead(&message_);
    from_.StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) call_.Cancel();  // The client has gone: the read fails, which ends the call.
    from_.StartRead(&message_);
  }
  void OnCancel() override { call_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // To gRPC a call with one request is a stream of one.
  class From final : public grpc::ClientBidiReactor<Request, Response> {
   public:
    explicit From(ForwardedStream* to) : to_(to) {}
    void OnReadDone(bool ok) override {
      if (!ok) return this->RemoveHold();
      to_->StartWrite(&to_->message_);
    }
    void OnDone(const grpc::Status& status) override { to_->Finish(to_->call_.Ended(status)); }

   private:
    ForwardedStream* const to_;
  };

  ForwardCalls::Call call_;
  From from_;
  Response message_;
};

// A call that is refused.
template <typename Response>
class RefusedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit RefusedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

template <typename Response>
grpc::ServerWriteReactor<Response>* RefuseStream(ForwardCalls* calls, const absl::Status& status) {
  return new RefusedStream<Response>(errors::ToGrpcStatus(status, calls->NextSpread()));
}

// What one member answered.
template <typename Response>
struct Answered {
  uint32_t shard = 0;
  grpc::Status status;
  Response response;
};

// Makes one answer from those of all members, in the order of their shards.
template <typename Response>
using Merge = std::function<grpc::Status(std::vector<Answered<Response>>* answers, Response* to)>;

// The first status that is not OK.
template <typename Response>
grpc::Status FirstError(const std::vector<Answered<Response>>& answers) {
  for (const Answered<Response>& one : answers) {
    if (!one.status.ok()) return one.status;
  }
  return grpc::Status::OK;
}

// The same of answers about a split job: members that do not know it say nothing, if one does.
template <typename Response>
grpc::Status FirstErrorOfParts(const std::vector<Answered<Response>>& answers) {
  bool known = false;
  for (const Answered<Response>& one : answers) {
    known = known || one.status.ok();
    const bool unknown = one.status.error_code() == grpc::StatusCode::NOT_FOUND;
    if (!one.status.ok() && !unknown) return one.status;
  }
  return known ? grpc::Status::OK : FirstError(answers);
}

// A call that is put to all members at once.
template <typename Request, typename Response>
class AskedAll final : public grpc::ServerUnaryReactor {
 public:
  // `requests` by shard.
  AskedAll(ForwardCalls* calls, const Asker& asker, std::string method,
           std::vector<Request> requests, Response* response, Merge<Response> merge)
      : method_(std::move(method)),
        requests_(std::move(requests)),
        response_(response),
        merge_(std::move(merge)),
        answers_(calls->membership().shards()),
        left_(answers_.size()) {
    for (uint32_t shard = 0; shard < answers_.size(); ++shard) {
      answers_[shard].shard = shard;
      calls_.push_back(std::make_unique<ForwardCalls::Call>(calls, shard, asker));
    }
    for (uint32_t shard = 0; shard < answers_.size(); ++shard) {
      grpc::TemplatedGenericStub<Request, Response>(calls_[shard]->channel())
          .UnaryCall(calls_[shard]->context(), method_, grpc::StubOptions(), &requests_[shard],
                     &answers_[shard].response,
                     [this, shard](const grpc::Status& status) { OnAnswer(shard, status); });
    }
  }

  void OnCancel() override {
    for (const auto& call : calls_) call->Cancel();
  }
  void OnDone() override { delete this; }

 private:
  void OnAnswer(uint32_t shard, const grpc::Status& status) {
    answers_[shard].status = calls_[shard]->Ended(status);
    if (--left_ > 0) return;
    Finish(merge_(&answers_, response_));
  }

  const std::string method_;
  const std::vector<Request> requests_;
  Response* const response_;
  const Merge<Response> merge_;
  std::vector<Answered<Response>> answers_;
  std::vector<std::unique_ptr<ForwardCalls::Call>> calls_;
  std::atomic<size_t> left_;
};

// The three ways in which a service in front of another answers a call. `name` is gRPC's of the
// method, "/tacho.v1.Query/GetJob".

inline grpc::ServerUnaryReactor* RefuseCall(ForwardCalls* calls,
                                            grpc::CallbackServerContext* context,
                                            const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(errors::ToGrpcStatus(status, calls->NextSpread()));
  return reactor;
}

// `here` is asked where no other member is.
template <typename Request, typename Response, typename Here>
grpc::ServerUnaryReactor* AnswerByOwner(ForwardCalls* calls, const char* name,
                                        const std::string& job,
                                        grpc::CallbackServerContext* context,
                                        const Request* request, Response* response, Here here) {
  const auto owner = calls->OwnerElsewhere(*context, job);
  if (!owner.has_value()) return here();
  const auto asker = calls->Admit(*context);
  if (!asker.ok()) return RefuseCall(calls, context, asker.status());
  return new ForwardedUnary<Request, Response>(calls, *owner, *asker, name, request, response);
}

template <typename Response, typename Request, typename Here>
grpc::ServerWriteReactor<Response>* StreamFromOwner(ForwardCalls* calls, const char* name,
                                                    const std::string& job,
                                                    grpc::CallbackServerContext* context,
                                                    const Request* request, Here here) {
  const auto owner = calls->OwnerElsewhere(*context, job);
  if (!owner.has_value()) return here();
  const auto asker = calls->Admit(*context);
  if (!asker.ok()) return RefuseStream<Response>(calls, asker.status());
  return new ForwardedStream<Request, Response>(calls, *owner, *asker, name, request);
}

// What members are asked about the part of a split job that each of them keeps. `part` finds the
// field in a request.
template <typename Request, typename Part>
std::vector<Request> PartsAsked(const Membership& membership, const Request& request, Part part) {
  std::vector<Request> asked(membership.shards(), request);
  for (uint32_t shard = 0; shard < membership.shards(); ++shard) {
    v1::HostPart* const proto = part(&asked[shard]);
    proto->set_part(shard);
    proto->set_parts(membership.shards());
  }
  return asked;
}

// `asked` is what members are asked. Not for calls that were passed on (ForwardCalls::AsksAll).
template <typename Request, typename Response>
grpc::ServerUnaryReactor* AnswerByAll(ForwardCalls* calls, const char* name, Request asked,
                                      grpc::CallbackServerContext* context, Response* response,
                                      Merge<Response> merge) {
  const auto asker = calls->Admit(*context);
  if (!asker.ok()) return RefuseCall(calls, context, asker.status());
  std::vector<Request> all(calls->membership().shards(), asked);
  return new AskedAll<Request, Response>(calls, *asker, name, std::move(all), response,
                                         std::move(merge));
}

// About a split job: `asked` is what PartsAsked() gave.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* AnswerByParts(ForwardCalls* calls, const char* name,
                                        std::vector<Request> asked,
                                        grpc::CallbackServerContext* context, Response* response,
                                        Merge<Response> merge) {
  const auto asker = calls->Admit(*context);
  if (!asker.ok()) return RefuseCall(calls, context, asker.status());
  return new AskedAll<Request, Response>(calls, *asker, name, std::move(asked), response,
                                         std::move(merge));
}

}  // namespace tacho::server::cluster

#include "server/cluster/asking/forward_writes.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::cluster {
namespace {

std::function<void(const absl::Status&, v1::StoreOutcome&)> Tell(interop::Elsewhere::Done done) {
  return [done = std::move(done)](const absl::Status& status, const v1::StoreOutcome& told) {
    if (!status.ok()) return done({.status = status});
    done({.stored = told.stored(),
          .stored_histograms = told.stored_histograms(),
          .refused = told.refused(),
          .refusal = told.refusal()});
  };
}

}  // namespace

bool ForwardWrites::Take(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes_ + bytes > kMaxBytes) return false;
  bytes_ += bytes;
  return true;
}

void ForwardWrites::Begin(uint32_t shard, size_t bytes, std::function<void()> call) {
  {
    absl::MutexLock lock(&mutex_);
    Lane& lane = lanes_[shard];
    if (lane.unanswered > 0 && lane.unanswered + bytes > kMaxUnanswered) {
      lane.waiting.emplace_back(bytes, std::move(call));
      return;
    }
    lane.unanswered += bytes;
  }
  call();
}

void ForwardWrites::End(uint32_t shard, size_t bytes) {
  std::vector<std::function<void()>> next;
  {
    absl::MutexLock lock(&mutex_);
    Lane& lane = lanes_[shard];
    bytes_ -= bytes;
    lane.unanswered -= bytes;
    while (!lane.waiting.empty()) {
      auto& [more, call] = lane.waiting.front();
      if (lane.unanswered > 0 && lane.unanswered + more > kMaxUnanswered) break;
      lane.unanswered += more;
      next.push_back(std::move(call));
      lane.waiting.pop_front();
    }
  }
  for (const auto& call : next) call();
}

template <typename Request, typename Response>
void ForwardWrites::Call(uint32_t shard, const char* method, const interop::Sender& sender,
                         Request request,
                         std::function<void(const absl::Status&, Response&)> done) {
  request.mutable_sender()->set_protocol(sender.protocol);
  request.mutable_sender()->set_peer(sender.shown.peer);
  struct Part {
    Part(Request asked, security::Credentials from,
         std::function<void(const absl::Status&, Response&)> then)
        : request(std::move(asked)), shown(std::move(from)), done(std::move(then)) {}
    const Request request;
    const security::Credentials shown;
    const std::function<void(const absl::Status&, Response&)> done;
    std::optional<ForwardCalls::Call> call;
    Response response;
  };
  const auto part = std::make_shared<Part>(std::move(request), sender.shown, std::move(done));
  const size_t bytes = part->request.ByteSizeLong();
  if (!Take(bytes)) {
    return part->done(errors::ErrorOf(errors::Failure::kOverloaded,
                                      "too much is on its way to other members of the cluster"),
                      part->response);
  }
  Begin(shard, bytes, [=, this] {
    part->call.emplace(&calls_, shard,
                       Asker{part->shown, absl::ToChronoTime(absl::Now() + kPatience)});
    grpc::TemplatedGenericStub<Request, Response>(part->call->channel())
        .UnaryCall(part->call->context(), method, grpc::StubOptions(), &part->request,
                   &part->response, [=, this](const grpc::Status& ended) {
                     const absl::Status status = StatusOf(part->call->Ended(ended), shard);
                     End(shard, bytes);
                     part->done(status, part->response);
                   });
  });
}

absl::Status ForwardWrites::StatusOf(const grpc::Status& status, uint32_t shard) const {
  if (status.ok()) return absl::OkStatus();
  const std::string name = calls_.membership().NameOf(shard);
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return errors::ErrorOf(errors::Failure::kOverloaded,
                             absl::StrCat("member ", name, " has not answered in time"));
    case grpc::StatusCode::FAILED_PRECONDITION:
      return absl::UnavailableError(
          absl::StrCat("member ", name,
                       " does not keep it: another one takes over, or interop.mapping differs "
                       "between them (",
                       status.error_message(), ")"));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnavailableError(
          absl::StrCat("member ", name, " does not take this: ", status.error_message()));
    default:
      return errors::FromGrpcStatus(status);
  }
}

void ForwardWrites::StoreSeries(uint32_t shard, const interop::Sender& sender,
                                v1::StoreSeriesRequest request, Done done) {
  Call<v1::StoreSeriesRequest, v1::StoreOutcome>(shard, "/tacho.v1.MemberWrites/StoreSeries",
                                                 sender, std::move(request), Tell(std::move(done)));
}

void ForwardWrites::StoreEvents(uint32_t shard, const interop::Sender& sender,
                                v1::StoreEventsRequest request, Done done) {
  Call<v1::StoreEventsRequest, v1::StoreOutcome>(shard, "/tacho.v1.MemberWrites/StoreEvents",
                                                 sender, std::move(request), Tell(std::move(done)));
}

void ForwardWrites::Push(uint32_t shard, const interop::Sender& sender, v1::PushRequest request,
                         PushDone done) {
  if (request.body().size() > kMaxPushBytes) {
    return done(
        errors::ErrorOf(errors::Failure::kTooLarge,
                        absl::StrCat("a push that is passed on may have ", kMaxPushBytes >> 20,
                                     " MiB: send it to ", calls_.membership().NameOf(shard))));
  }
  Call<v1::PushRequest, v1::PushResponse>(
      shard, "/tacho.v1.MemberWrites/Push", sender, std::move(request),
      [done = std::move(done)](const absl::Status& status, v1::PushResponse& told) {
        if (!status.ok()) return done(status);
        done(std::move(told));
      });
}

}  // namespace tacho::server::cluster

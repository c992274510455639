#include "server/interop/member_writes.h"

#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/interop/passing/passed_events.h"
#include "server/interop/passing/passed_series.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::interop {
namespace {

constexpr size_t kMaxProtocolBytes = 32;
constexpr size_t kMaxPeerBytes = 256;

//   INVALID_ARGUMENT  a text of `told` is too long.
absl::StatusOr<Sender> SenderOf(const v1::PassedSender& told, security::RightsPtr rights) {
  if (told.protocol().size() > kMaxProtocolBytes || told.peer().size() > kMaxPeerBytes) {
    return errors::InvalidFieldError("sender", "its texts are too long");
  }
  return Sender{.protocol = told.protocol(),
                .shown = {.peer = told.peer()},
                .rights = std::move(rights),
                .passed_on = true};
}

void FillAnswer(const WriteOutcome& outcome, v1::StoreOutcome* to) {
  to->set_stored(outcome.stored);
  to->set_stored_histograms(outcome.stored_histograms);
  to->set_refused(outcome.refused);
  to->set_refusal(outcome.refusal);
}

void FillAnswer(const http::HttpResponse& from, v1::PushResponse* to) {
  to->set_status(static_cast<uint32_t>(from.status));
  to->set_body(from.body);
  for (const auto& [name, value] : from.headers) {
    uint32_t seconds = 0;
    if (name == "Retry-After" && absl::SimpleAtoi(value, &seconds)) {
      to->set_retry_after_seconds(seconds);
    }
  }
}

}  // namespace

// gRPC deletes nothing of it; OnDone() comes once the call is finished and nothing is on its way.
template <typename Request, typename Answer>
class MemberWrites::Call final : public grpc::ServerReadReactor<Request> {
 public:
  using Store = std::function<void(const Request& request, const Sender& sender, Call* call)>;

  Call(absl::StatusOr<security::RightsPtr> admitted, Answer* answer, Store store)
      : admitted_(std::move(admitted)), answer_(answer), store_(std::move(store)) {
    if (admitted_.ok()) {
      this->StartRead(&request_);
    } else {
      End(admitted_.status());
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      return End(errors::ErrorOf(errors::Failure::kMalformed, "the call has no message"));
    }
    const auto sender = SenderOf(request_.sender(), *admitted_);
    if (!sender.ok()) return End(sender.status());
    store_(request_, *sender, this);
  }
  void OnDone() override { delete this; }

  Answer* answer() { return answer_; }
  void End(const absl::Status& status) { this->Finish(errors::ToGrpcStatus(status)); }

 private:
  const absl::StatusOr<security::RightsPtr> admitted_;
  Answer* const answer_;
  const Store store_;
  Request request_;
};

MemberWrites::MemberWrites(MemberWritesOptions options) : options_(std::move(options)) {
  TACHO_CHECK(options_.intake != nullptr);
}

absl::StatusOr<security::RightsPtr> MemberWrites::Admit(
    const grpc::CallbackServerContext& context) const {
  TACHO_ASSIGN_OR_RETURN(const auto caller, security::AdmitCall(options_.guard.access, context,
                                                                security::Role::kWrite));
  TACHO_RETURN_IF_ERROR(options_.intake->CheckOpen());
  return caller.rights_ptr();
}

grpc::ServerReadReactor<v1::StoreSeriesRequest>* MemberWrites::StoreSeries(
    grpc::CallbackServerContext* context, v1::StoreOutcome* answer) {
  using SeriesCall = Call<v1::StoreSeriesRequest, v1::StoreOutcome>;
  const auto store = [this](const v1::StoreSeriesRequest& request, const Sender& sender,
                            SeriesCall* call) {
    const auto write = ReadPassedSeries(request);
    if (!write.ok()) return call->End(write.status());
    options_.intake->Write(*write, sender, [call](const WriteOutcome& outcome) {
      FillAnswer(outcome, call->answer());
      call->End(outcome.status);
    });
  };
  return new SeriesCall(Admit(*context), answer, store);
}

grpc::ServerReadReactor<v1::StoreEventsRequest>* MemberWrites::StoreEvents(
    grpc::CallbackServerContext* context, v1::StoreOutcome* answer) {
  using EventsCall = Call<v1::StoreEventsRequest, v1::StoreOutcome>;
  const auto store = [this](const v1::StoreEventsRequest& request, const Sender& sender,
                            EventsCall* call) {
    const auto write = ReadPassedEvents(request);
    if (!write.ok()) return call->End(write.status());
    options_.intake->WriteEvents(*write, sender, [call](const WriteOutcome& outcome) {
      FillAnswer(outcome, call->answer());
      call->End(outcome.status);
    });
  };
  return new EventsCall(Admit(*context), answer, store);
}

grpc::ServerReadReactor<v1::PushRequest>* MemberWrites::Push(grpc::CallbackServerContext* context,
                                                             v1::PushResponse* answer) {
  using PushCall = Call<v1::PushRequest, v1::PushResponse>;
  const auto store = [this](const v1::PushRequest& request, const Sender& sender, PushCall* call) {
    if (options_.push == nullptr) {
      return call->End(errors::ErrorOf(errors::Failure::kUnsupported,
                                       "interop.push is off at the member that keeps the job"));
    }
    options_.push->Store({.method = request.method(),
                          .path = request.path(),
                          .content_type = request.content_type(),
                          .content_encoding = request.content_encoding(),
                          .body = request.body()},
                         sender, [call](const http::HttpResponse& response) {
                           FillAnswer(response, call->answer());
                           call->End(absl::OkStatus());
                         });
  };
  return new PushCall(Admit(*context), answer, store);
}

}  // namespace tacho::server::interop

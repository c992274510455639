#include "server/errors/unparsed_requests.h"

#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::errors {
namespace {

using grpc::experimental::InterceptionHookPoints;

class Answer final : public grpc::experimental::Interceptor {
 public:
  Answer(const char* method, const std::function<void(absl::string_view)>& count)
      : method_(method), count_(count) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(ToGrpcStatus(
            ErrorOf(Failure::kMalformed, "the bytes of the request are not its message")));
        if (count_) count_(method_);
      }
    }
    methods->Proceed();
  }

 private:
  const char* const method_;
  const std::function<void(absl::string_view)>& count_;  // The factory's, which outlives the calls.
};

}  // namespace

grpc::experimental::Interceptor* UnparsedRequests::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  using Type = grpc::experimental::ServerRpcInfo::Type;
  // An unknown method looks like a stream in both directions.
  const bool one_request = info->type() == Type::UNARY || info->type() == Type::SERVER_STREAMING;
  return one_request ? new Answer(info->method(), count_) : nullptr;
}

}  // namespace tacho::server::errors

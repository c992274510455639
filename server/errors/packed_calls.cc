#include "server/errors/packed_calls.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"

// gRPC takes the header grpc-encoding away before any code of ours runs, and its C++ interface
// shows neither that nor the flag of a message. These functions of its library do; no installed
// header has them.
grpc_compression_algorithm grpc_call_test_only_get_compression_algorithm(grpc_call* call);
uint32_t grpc_call_test_only_get_message_flags(grpc_call* call);

namespace tacho::server::errors {
namespace {

constexpr uint32_t kPackedFlag = uint32_t{1} << 31;  // GRPC_WRITE_INTERNAL_COMPRESS.

// As gRPC ends a call whose encoding is switched off.
void RefuseIfPacked(grpc_call* call) {
  if (grpc_call_test_only_get_compression_algorithm(call) == GRPC_COMPRESS_NONE) return;
  grpc_call_cancel_with_status(call, GRPC_STATUS_UNIMPLEMENTED,
                               "compressed messages are taken for OpenTelemetry only: send this "
                               "call without compression",
                               nullptr);
}

// For services with threads of gRPC's, as reflection: their calls are not known to their contexts
// before the first hook.
class LateRefusal final : public grpc::experimental::Interceptor {
 public:
  explicit LateRefusal(grpc::ServerContextBase* context) : context_(context) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (context_ != nullptr) RefuseIfPacked(std::exchange(context_, nullptr)->c_call());
    methods->Proceed();
  }

 private:
  grpc::ServerContextBase* context_;
};

}  // namespace

grpc::experimental::Interceptor* PackedCalls::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  const absl::string_view method = info->method();
  const bool taken = std::any_of(takers_.begin(), takers_.end(), [method](absl::string_view taker) {
    return absl::StartsWith(method, taker);
  });
  if (taken) return nullptr;
  grpc_call* const call = info->server_context()->c_call();
  if (call == nullptr) return new LateRefusal(info->server_context());
  RefuseIfPacked(call);
  return nullptr;
}

bool IsPacked(grpc::CallbackServerContext* context) {
  grpc_call* const call = context->c_call();
  return grpc_call_test_only_get_compression_algorithm(call) == GRPC_COMPRESS_GZIP &&
         (grpc_call_test_only_get_message_flags(call) & kPackedFlag) != 0;
}

}  // namespace tacho::server::errors

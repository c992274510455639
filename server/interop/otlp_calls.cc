#include "server/interop/otlp_calls.h"

#include <utility>

#include "grpcpp/impl/codegen/rpc_service_method.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/slice.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/errors/packed_calls.h"
#include "server/interop/formats/packed_body.h"

namespace tacho::server::interop {

// gRPC deletes nothing of it; OnDone() comes once the call is finished and nothing is on its way.
class OtlpCalls::Call final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  Call(const OtlpCalls* calls, grpc::CallbackServerContext* context, grpc::ByteBuffer* answer)
      : calls_(*calls),
        context_(context),
        answer_(answer),
        caller_(AdmitOtlpCall(calls_.options_.guard, *calls_.options_.intake, *context)) {
    if (caller_.ok()) {
      StartRead(&message_);
    } else {
      Finish(errors::ToGrpcStatus(caller_.status()));
    }
  }

  void OnReadDone(bool ok) override {
    grpc::Slice slice;
    std::string unpacked;
    const auto request =
        ok ? calls_.BytesOf(context_, &message_, &slice, &unpacked)
           : errors::ErrorOf(errors::Failure::kMalformed, "the call has no message");
    message_.Clear();
    if (!request.ok()) return Finish(errors::ToGrpcStatus(request.status()));
    calls_.options_.store(
        *request, *caller_,
        [this](const absl::Status& status, const google::protobuf::Message& told) {
          const grpc::Slice bytes(told.SerializeAsString());
          *answer_ = grpc::ByteBuffer(&bytes, 1);
          Finish(errors::ToGrpcStatus(status));
        });
  }

  void OnDone() override { delete this; }

 private:
  const OtlpCalls& calls_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const answer_;
  const absl::StatusOr<OtlpCaller> caller_;
  grpc::ByteBuffer message_;
};

OtlpCalls::OtlpCalls(OtlpCallsOptions options) : options_(std::move(options)) {
  TACHO_CHECK(options_.intake != nullptr && options_.store != nullptr);
  using Method = grpc::internal::RpcMethod;
  // What the code that protoc generates does for a method with a stream of bytes.
  AddMethod(new grpc::internal::RpcServiceMethod(options_.method.c_str(), Method::CLIENT_STREAMING,
                                                 nullptr));
  MarkMethodRawCallback(
      0, new grpc::internal::CallbackClientStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
             [this](grpc::CallbackServerContext* context, grpc::ByteBuffer* answer) {
               return new Call(this, context, answer);
             }));
}

absl::StatusOr<absl::string_view> OtlpCalls::BytesOf(grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* message, grpc::Slice* slice,
                                                     std::string* unpacked) const {
  if (!message->DumpToSingleSlice(slice).ok()) {
    return errors::ErrorOf(errors::Failure::kMalformed, "the message cannot be read");
  }
  const absl::string_view view(reinterpret_cast<const char*>(slice->begin()), slice->size());
  if (!errors::IsPacked(context)) return view;
  TACHO_ASSIGN_OR_RETURN(*unpacked, UnpackGzip(view, options_.max_bytes));
  return *unpacked;
}

}  // namespace tacho::server::interop

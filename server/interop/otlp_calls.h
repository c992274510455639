// The calls of a service of OpenTelemetry over gRPC: who may call, and the bytes of the request,
// unpacked within bounds.
//
// To gRPC's server the method is one that reads a stream, of which there comes one message; on the
// wire there is no difference. So a call begins with its headers: its sender is admitted before the
// message is read, and a connection whose first request is large is no stranger's
// (edge/connection_table.h).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/http/http_guard.h"
#include "server/interop/intake.h"
#include "server/interop/otlp_http.h"

namespace tacho::server::interop {

using OtlpDone = std::function<void(const absl::Status&, const google::protobuf::Message&)>;

struct OtlpCallsOptions {
  std::string method;  // "/package.Service/Method".
  http::HttpGuard guard;
  Intake* intake = nullptr;  // Not owned.
  size_t max_bytes = 0;      // Of a gzip message when it is unpacked.
  // Gets the bytes of a request, which are not trusted and are gone when it returns. It calls
  // `done` once, perhaps later and on another thread.
  std::function<void(absl::string_view request, const OtlpCaller& caller, OtlpDone done)> store;
};

// For ServerBuilder::RegisterService(). Thread-safe. Must outlive the server.
class OtlpCalls final : public grpc::Service {
 public:
  explicit OtlpCalls(OtlpCallsOptions options);

 private:
  class Call;

  // The bytes of the message that `context` received, which are in `slice` or in `unpacked`.
  //   as UnpackGzip().
  absl::StatusOr<absl::string_view> BytesOf(grpc::CallbackServerContext* context,
                                            grpc::ByteBuffer* message, grpc::Slice* slice,
                                            std::string* unpacked) const;

  const OtlpCallsOptions options_;
};

}  // namespace tacho::server::interop

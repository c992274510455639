// Compressed messages over gRPC. 1.51 unpacks a message whole before it looks at its size, so its
// own unpacking is off (process/grpc_transport.h). Services that unpack with bounds of their own
// get the bytes as they came; calls of all others are refused as soon as their headers say gzip.
#pragma once

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_interceptor.h"

namespace tacho::server::errors {

// For ServerBuilder::experimental().SetInterceptorCreators(). A call with the header
// "grpc-encoding: gzip" ends with UNIMPLEMENTED and a text, unless its method begins with one of
// `takers`. Thread-safe.
class PackedCalls final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit PackedCalls(std::vector<absl::string_view> takers) : takers_(std::move(takers)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  const std::vector<absl::string_view> takers_;
};

// Whether the message that the call received last is gzip.
bool IsPacked(grpc::CallbackServerContext* context);

}  // namespace tacho::server::errors

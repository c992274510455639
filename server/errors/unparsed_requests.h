// Answers requests that do not parse with MALFORMED. gRPC's own answer, before any code of ours
// runs, is UNIMPLEMENTED without a text, as if the method did not exist.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "grpcpp/support/server_interceptor.h"

namespace tacho::server::errors {

// For ServerBuilder::experimental().SetInterceptorCreators(). Covers methods that take one request.
// Their code must never itself answer with UNIMPLEMENTED and no text. Thread-safe.
class UnparsedRequests final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `count` may be null. It gets the method as gRPC names it, "/tacho.v1.Query/Range", on any of
  // gRPC's threads, and must be quick.
  explicit UnparsedRequests(std::function<void(absl::string_view)> count = nullptr)
      : count_(std::move(count)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  const std::function<void(absl::string_view)> count_;
};

}  // namespace tacho::server::errors

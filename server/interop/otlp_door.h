// Metrics of OpenTelemetry: gRPC, and HTTP with protobuf or JSON, gzip or not. A request is
// answered once its samples are durable.
//
// Points that are refused for good are counted in partial_success, with the reason; the client does
// not send them again (opentelemetry-proto, docs/specification.md, "Partial Success"). What time
// heals is UNAVAILABLE with RetryInfo, over HTTP 503 with Retry-After; then all of the request
// comes again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "interop/otlp_metrics_service.grpc.pb.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/http/http_guard.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/delta_sums.h"
#include "server/interop/intake.h"
#include "server/security/access_control.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

struct OtlpOptions {
  Intake* intake = nullptr;  // Not owned.
  http::HttpGuard guard;
  config::v1::Interop config;
  prometheus::Registry* registry = nullptr;  // Not owned.
};

// Thread-safe. Must outlive the servers and the store, which call it.
class OtlpDoor final
    : public opentelemetry::proto::collector::metrics::v1::MetricsService::CallbackService {
 public:
  using Request = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
  using Response = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;

  explicit OtlpDoor(OtlpOptions options);

  // POST /v1/metrics.
  std::vector<http::Route> Routes();
  void Handle(const http::HttpRequest& request, const http::ResponderPtr& responder);

  grpc::ServerUnaryReactor* Export(grpc::CallbackServerContext* context, const Request* request,
                                   Response* response) override;

 private:
  // Calls `done` once the request is durable or refused, as Intake::Write() does.
  void Store(const Request& request, const std::string& sender, const security::RightsPtr& rights,
             std::function<void(const absl::Status&, const Response&)> done);

  const OtlpOptions options_;
  const std::vector<std::string> resource_attributes_;
  const size_t max_bytes_;  // Of a request over HTTP, after decompression.
  DeltaSums deltas_;
  prometheus::Counter& samples_;
  prometheus::Counter& exemplars_;
};

}  // namespace tacho::server::interop

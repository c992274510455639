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

#include "grpcpp/impl/service_type.h"
#include "interop/otlp_metrics_service.pb.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/http/http_guard.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"
#include "server/interop/otlp_calls.h"
#include "server/interop/otlp_metrics.h"
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
class OtlpDoor final {
 public:
  static constexpr char kMethod[] =
      "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
  using Request = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
  using Response = opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;

  explicit OtlpDoor(OtlpOptions options);

  // POST /v1/metrics.
  std::vector<http::Route> Routes();
  void Handle(const http::HttpRequest& request, const http::ResponderPtr& responder);

  // Export over gRPC.
  grpc::Service* calls() { return &calls_; }

 private:
  // Calls `done` once the request is durable or refused, as Intake::Write() does.
  void Store(absl::string_view request, const OtlpCaller& caller, OtlpDone done);

  const OtlpOptions options_;
  const std::vector<std::string> resource_attributes_;
  const size_t max_bytes_;  // Of a request over HTTP, or gzip over gRPC, when unpacked.
  OtlpCalls calls_;
  OtlpMemory memory_;
  prometheus::Counter& samples_;
  prometheus::Counter& exemplars_;
};

}  // namespace tacho::server::interop

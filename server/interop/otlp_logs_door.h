// Logs of OpenTelemetry, of which events are taken: gRPC, and HTTP with protobuf or JSON, gzip or
// not. A request is answered once its events are durable.
//
// Records that are no events, or are refused for good, are counted in partial_success, with the
// reason; the client does not send them again (opentelemetry-proto, docs/specification.md, "Partial
// Success"). What time heals is UNAVAILABLE with RetryInfo, over HTTP 503 with Retry-After; then
// all of the request comes again, and no event is stored twice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "interop/otlp_logs_service.pb.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/http/http_guard.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"
#include "server/interop/otlp_calls.h"
#include "server/security/rights.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

struct OtlpLogsOptions {
  Intake* intake = nullptr;  // Not owned.
  http::HttpGuard guard;
  config::v1::Interop config;
  prometheus::Registry* registry = nullptr;     // Not owned.
  std::function<absl::Time()> now = absl::Now;  // For events that have no time of their own.
};

// Thread-safe. Must outlive the servers and the store, which call it.
class OtlpLogsDoor final {
 public:
  static constexpr char kMethod[] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
  using Request = opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest;
  using Response = opentelemetry::proto::collector::logs::v1::ExportLogsServiceResponse;

  explicit OtlpLogsDoor(OtlpLogsOptions options);

  // POST /v1/logs.
  std::vector<http::Route> Routes();
  void Handle(const http::HttpRequest& request, const http::ResponderPtr& responder);

  // Export over gRPC.
  grpc::Service* calls() { return &calls_; }

 private:
  // Calls `done` once the request is durable or refused, as Intake::WriteEvents() does.
  void Store(absl::string_view request, const OtlpCaller& caller, OtlpDone done);

  const OtlpLogsOptions options_;
  const std::vector<std::string> resource_attributes_;
  const size_t max_bytes_;  // Of a request over HTTP, or gzip over gRPC, when unpacked.
  OtlpCalls calls_;
  prometheus::Counter& events_;
  prometheus::Counter& rejected_;
};

}  // namespace tacho::server::interop

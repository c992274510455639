#include "server/http/routes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/http/accept.h"
#include "server/http/error_response.h"

namespace tacho::server::http {
namespace {

constexpr char kIndex[] =
    "tacho-collector\n"
    "\n"
    "/metrics   aggregates of every job and the collector's own metrics, for Prometheus\n"
    "/healthz   200 while the process lives\n"
    "/readyz    200 while it takes work\n"
    "\n"
    "History is asked for over gRPC: tachoctl jobs\n";

HttpResponse Metrics(const MetricsPage& metrics, const HttpRequest& request,
                     const security::Rights& rights) {
  if (!AcceptsPrometheusText(request.accept)) {
    return ErrorResponse(errors::ErrorOf(errors::Condition::kNotAcceptable,
                                         absl::StrCat("There is only ", kPrometheusText)));
  }
  return {.content_type = kPrometheusText, .body = metrics.Render(rights)};
}

HttpResponse Ready(const Readiness& readiness) {
  const absl::Status status = readiness.Check();
  return status.ok() ? HttpResponse{.body = "ready\n"} : ErrorResponse(status);
}

}  // namespace

std::vector<Route> CollectorRoutes(const MetricsPage* metrics, const Readiness* readiness,
                                   const HttpGuard& guard) {
  const auto page = [metrics, guard](const HttpRequest& request) {
    return guard.Answer(request, security::Role::kRead, [&](const security::Rights& rights) {
      return Metrics(*metrics, request, rights);
    });
  };
  return {
      {"/", [](const HttpRequest&) { return HttpResponse{.body = kIndex}; }},
      {"/metrics", page},
      {"/healthz", [](const HttpRequest&) { return HttpResponse{.body = "alive\n"}; }},
      {"/readyz", [readiness](const HttpRequest&) { return Ready(*readiness); }},
  };
}

}  // namespace tacho::server::http

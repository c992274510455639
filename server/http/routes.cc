#include "server/http/routes.h"

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/http/content.h"

namespace tacho::server::http {
namespace {

constexpr char kTitle[] = "tacho-collector\n\n";
constexpr char kPage[] = "/ui/       the page, for browsers\n";
constexpr char kOthers[] =
    "/metrics   aggregates of every job and the collector's own metrics, for Prometheus\n"
    "/api/v1/write, /v1/metrics, /v1/logs, /write, /api/v2/write\n"
    "           for tools that write: Prometheus remote write, OpenTelemetry's metrics and "
    "events,\n"
    "           InfluxDB's line protocol in its two versions\n"
    "/metrics/job/JOB\n"
    "           for short jobs that push: POST, PUT and DELETE, as a Pushgateway takes them\n"
    "/api/v1/read\n"
    "           history, for Prometheus remote read\n"
    "/healthz   200 while the process lives\n"
    "/readyz    200 while it takes work\n"
    "\n"
    "For history, ask over gRPC: tachoctl jobs\n";

// Browsers name text/html in Accept; curl and probes take anything.
HttpResponse Index(const HttpRequest& request, bool has_page) {
  if (!has_page || !absl::StrContains(request.Header("accept"), "text/html")) {
    return {.body = absl::StrCat(kTitle, has_page ? kPage : "", kOthers)};
  }
  // Relative, for a collector behind a proxy that gives it a folder.
  return {.status = 303, .body = "see /ui/\n", .headers = {{"Location", "ui/"}}};
}

// `page` for a request whose caller has the role; else a refusal.
HttpResponse Guarded(const HttpGuard& guard, const HttpRequest& request, security::Role role,
                     absl::FunctionRef<HttpResponse(const security::Rights&)> page) {
  const auto caller = AdmitRequest(guard, request, role);
  return caller.ok() ? page(caller->rights()) : CallerRefusal(caller.status());
}

HttpResponse Metrics(const MetricsPage& metrics, const HttpRequest& request,
                     const security::Rights& rights) {
  if (!AcceptsPrometheusText(request.Header("accept"))) {
    return ErrorResponse(errors::ErrorOf(errors::Failure::kNotAcceptable,
                                         absl::StrCat("The only format is ", kPrometheusText)));
  }
  return {.content_type = kPrometheusText, .body = metrics.Render(rights)};
}

HttpResponse Ready(const Readiness& readiness) {
  const absl::Status status = readiness.Check();
  return status.ok() ? HttpResponse{.body = "ready\n"} : ErrorResponse(status);
}

}  // namespace

std::vector<Route> CollectorRoutes(const MetricsPage* metrics, const Readiness* readiness,
                                   const HttpGuard& guard, bool has_page) {
  const auto page = [metrics, guard](const HttpRequest& request) {
    return Guarded(guard, request, security::Role::kRead, [&](const security::Rights& rights) {
      return Metrics(*metrics, request, rights);
    });
  };
  return {
      {"/", [has_page](const HttpRequest& request) { return Index(request, has_page); }},
      {"/metrics", page},
      {"/healthz", [](const HttpRequest&) { return HttpResponse{.body = "alive\n"}; }},
      {"/readyz", [readiness](const HttpRequest&) { return Ready(*readiness); }},
  };
}

}  // namespace tacho::server::http

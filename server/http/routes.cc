#include "server/http/routes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/accept.h"

namespace tacho::server {
namespace {

constexpr char kIndex[] =
    "tacho-collector\n"
    "\n"
    "/metrics   aggregates of every job and the collector's own metrics, for Prometheus\n"
    "/healthz   200 while the process lives\n"
    "/readyz    200 while it takes work\n"
    "\n"
    "History is asked for over gRPC: tachoctl jobs\n";

HttpResponse Metrics(const MetricsPage& metrics, const HttpRequest& request) {
  if (!AcceptsPrometheusText(request.accept)) {
    return {.status = 406, .body = absl::StrCat("There is only ", kPrometheusText, "\n")};
  }
  return {.content_type = kPrometheusText, .body = metrics.Render()};
}

HttpResponse Ready(const Readiness& readiness) {
  const std::string why_not = readiness.WhyNotReady();
  if (why_not.empty()) return {.body = "ready\n"};
  return {.status = 503, .body = absl::StrCat("not ready: ", why_not, "\n")};
}

}  // namespace

std::vector<Route> CollectorRoutes(const MetricsPage* metrics, const Readiness* readiness) {
  return {
      {"/", [](const HttpRequest&) { return HttpResponse{.body = kIndex}; }},
      {"/metrics", [metrics](const HttpRequest& request) { return Metrics(*metrics, request); }},
      {"/healthz", [](const HttpRequest&) { return HttpResponse{.body = "alive\n"}; }},
      {"/readyz", [readiness](const HttpRequest&) { return Ready(*readiness); }},
  };
}

}  // namespace tacho::server

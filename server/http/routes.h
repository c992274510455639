// What the collector serves over HTTP.
#pragma once

#include <vector>

#include "server/http/http_guard.h"
#include "server/http/http_server.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"

namespace tacho::server::http {

// /           what there is, for a person with a browser
// /metrics    for Prometheus, for the role read, with the jobs that its holder may touch; 406 if
//             the client takes no format that is served
// /healthz    200 while the process lives
// /readyz     200 while it takes work, else 503 and the reason
// Neither is owned; both must outlive the server.
std::vector<Route> CollectorRoutes(const MetricsPage* metrics, const Readiness* readiness,
                                   const HttpGuard& guard = {});

}  // namespace tacho::server::http

// The pages that the collector serves over HTTP, besides its page for browsers.
#pragma once

#include <vector>

#include "server/http/http_guard.h"
#include "server/http/http_server.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"

namespace tacho::server::http {

// /           what there is, in words; leads browsers to /ui/ if `has_page`
// /metrics    for Prometheus, for the role read, with the jobs that the caller may touch; 406 if
//             the client takes no format that is served, 401 without a valid token, 403 if the
//             role or the client certificate is missing
// /healthz    200 while the process lives
// /readyz     200 while it takes work, else 503 and the reason
// Neither is owned; both must outlive the server.
std::vector<Route> CollectorRoutes(const MetricsPage* metrics, const Readiness* readiness,
                                   const HttpGuard& guard = {}, bool has_page = false);

}  // namespace tacho::server::http

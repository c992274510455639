// Asks the page's routes as the HTTP server would.
#pragma once

#include <string>

#include "absl/strings/match.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/web/web_routes.h"

namespace tacho::server::web {

inline http::HttpResponse Ask(const std::string& path, const http::HttpRequest::Pairs& headers = {},
                              const WebOptions& options = {}) {
  http::HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.headers = headers;
  for (const http::Route& route : WebRoutes(options)) {
    const bool fits = route.prefix ? absl::StartsWith(path, route.path) : path == route.path;
    if (fits) return route.handler(request);
  }
  return {.status = 599, .body = "no route"};
}

}  // namespace tacho::server::web

// The small HTTP side of the collector: a few GET routes, nothing else. Which library understands
// requests is decided in http_server.cc alone (docs/decisions/0001-http-library.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/registry.h"
#include "server/http/http_limits.h"
#include "server/security/access_control.h"
#include "server/security/tls_source.h"

namespace tacho::server::http {

struct HttpRequest {
  std::string accept;                 // The header as sent; empty if there is none.
  security::Credentials credentials;  // What the request and its connection show.
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Besides those above.
};

// A path, matched exactly, for GET and HEAD. `handler` is called on any of the server's threads,
// several at once. What it throws is answered with 500.
struct Route {
  std::string path;
  std::function<HttpResponse(const HttpRequest&)> handler;
};

struct HttpServerOptions {
  std::string
      address;  // "127.0.0.1:7412", "[::1]:7412", "localhost:7412"; port 0 takes a free one.
  std::vector<Route> routes;
  const security::TlsSource* tls = nullptr;  // Not owned; must outlive the server. Null: no TLS.
  HttpLimits limits;
  prometheus::Registry* registry = nullptr;  // As `tls`. Null: nothing is counted.
};

// Thread-safe but for destruction. A connection serves one request and is closed. Bodies of
// requests are refused, and so are ranges. Clients that are slow hold no thread (http_front.h).
class HttpServer {
 public:
  // Listens and serves on threads of its own.
  //   INVALID_ARGUMENT  the address is not host:port.
  //   UNAVAILABLE       the address cannot be bound; the text says which.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Stops if Stop() was not called.
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  // Finishes the requests at work, closes the port, joins the threads. May be called again.
  virtual void Stop() = 0;
};

}  // namespace tacho::server::http

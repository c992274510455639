// The small HTTP side of the collector: a few GET routes, nothing else
// (docs/decisions/0001-http-library.md).
#pragma once

#include <openssl/ossl_typ.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "server/http/http_front.h"
#include "server/http/http_message.h"
#include "server/security/tls_source.h"

namespace tacho::server::http {

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
  prometheus::Registry* registry = nullptr;     // As `tls`. Null: nothing is counted.
  std::function<absl::Time()> now = absl::Now;  // For the header Date.
};

// Thread-safe but for destruction. A connection serves one request and is closed. Bodies of
// requests are refused, and so are ranges. Slow clients hold no thread (http_front.h).
class HttpServer {
 public:
  // Listens and serves on threads of its own.
  //   INVALID_ARGUMENT  the address is not host:port.
  //   UNAVAILABLE       the address cannot be bound; the text says which.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  ~HttpServer();  // Stops if Stop() was not called.

  int port() const { return front_->port(); }
  // Finishes the requests at work, closes the port, joins the threads. May be called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit HttpServer(HttpServerOptions options);
  absl::Status Listen();
  // Answers the request of `connection`. Several threads at once.
  HttpFront::Served Serve(const HttpConnection& connection) const;
  HttpResponse Handle(const HttpRequest& request) const;

  const HttpServerOptions options_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_;  // Null: no TLS.
  std::atomic<uint64_t> refusals_ = 0;  // Spreads the delays of those turned away together.
  absl::Mutex mutex_;                   // Orders Stop().
  std::unique_ptr<HttpFront> front_;    // Last: its threads use the others.
};

}  // namespace tacho::server::http

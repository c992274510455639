// The HTTP port of the collector: its options, TLS, and the calls of handlers
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
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/http/http_front.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/security/tls_source.h"

namespace tacho::server::http {

struct HttpServerOptions {
  std::string
      address;  // "127.0.0.1:7412", "[::1]:7412", "localhost:7412"; port 0 takes a free one.
  std::vector<Route> routes;
  const security::TlsSource* tls = nullptr;  // Not owned; must outlive the server. Null: no TLS.
  // Other names of the collector, for Host (browser_guard.h).
  std::vector<std::string> hosts;
  // Whether the page and the API are only for clients with a certificate.
  bool require_certificate = false;
  HttpLimits limits;
  prometheus::Registry* registry = nullptr;     // As `tls`. Null: nothing is counted.
  std::function<absl::Time()> now = absl::Now;  // For the header Date.
};

// Thread-safe but for destruction. A connection serves one request after the other; a client may
// send the next one before it has its answer. Slow clients hold no thread (http_front.h), and
// neither do answers that come later.
class HttpServer {
 public:
  // Listens and serves on threads of its own.
  //   INVALID_ARGUMENT  the address is not host:port.
  //   UNAVAILABLE       the address cannot be bound; the text says which.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  ~HttpServer();  // Stops if Stop() was not called.

  int port() const { return front_->port(); }
  // Finishes the requests at work as HttpFront::Stop(), closes the port, joins the threads. May be
  // called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit HttpServer(HttpServerOptions options);
  absl::Status Listen();
  HttpFront::Intake TakeIn(const HttpConnection& connection) const;
  // Several threads at once.
  static void Serve(const std::shared_ptr<HttpExchange>& exchange);
  void Count(const Route* route, int status, absl::Duration took) const;

  const HttpServerOptions options_;
  const HttpRouter router_;
  prometheus::Family<prometheus::Counter>* requests_ = nullptr;     // Null: nothing is counted.
  prometheus::Family<prometheus::Histogram>* durations_ = nullptr;  // The same.
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_;                // Null: no TLS.
  std::atomic<uint64_t> refusals_ = 0;  // Spreads the delays of those turned away together.
  absl::Mutex mutex_;                   // Orders Stop().
  std::unique_ptr<HttpFront> front_;    // Last: its threads use the others.
};

}  // namespace tacho::server::http

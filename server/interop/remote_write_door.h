// Remote write of Prometheus over HTTP: POST /api/v1/write, 1.0 and 2.0.
//
//   204  all samples are durable: written and synced. Other receivers promise less.
//   400  some samples will never be stored; the body says why, and all others are durable. Also:
//        the request is damaged, and nothing of it is stored.
//   401, 403, 413, 415  who the sender is, what it may do, how much and in which form it may send.
//   503  nothing, or a part, is stored; Retry-After says when to send all of it again.
//
// A request of 2.0 is also told, in headers, how much of it was stored.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"

namespace tacho::server::interop {

struct RemoteWriteOptions {
  Intake* intake = nullptr;  // Not owned.
  http::HttpGuard guard;
  size_t max_request_bytes = size_t{32} << 20;  // After decompression.
  prometheus::Registry* registry = nullptr;     // Not owned.
};

// Thread-safe. Must outlive the HTTP server and the store, which call it.
class RemoteWriteDoor {
 public:
  explicit RemoteWriteDoor(RemoteWriteOptions options);

  std::vector<http::Route> Routes();
  // Answers when the store has settled the request.
  void Handle(const http::HttpRequest& request, const http::ResponderPtr& responder);

 private:
  enum class Version { k1, k2 };
  // The version, or why the form is refused.
  static absl::StatusOr<Version> VersionOf(const http::HttpRequest& request);
  http::HttpResponse Answer(Version version, const WriteOutcome& outcome) const;

  const RemoteWriteOptions options_;
  prometheus::Counter& samples_;
  prometheus::Counter& exemplars_;
};

}  // namespace tacho::server::interop

// InfluxDB's line protocol over HTTP, as clients of versions 1 and 2 write it
// (https://docs.influxdata.com/influxdb/v1/tools/api/#write-http-endpoint and
// https://docs.influxdata.com/influxdb/v2/api/v2/#operation/PostWrite).
//
//   POST /write         precision n, ns, u, us, ms, s, m or h; {"error": TEXT} says what failed
//   POST /api/v2/write  precision ns, us, ms or s; {"code": WORD, "message": TEXT} says it
//   GET  /ping          204, for clients that ask first whether InfluxDB is there
//
//   204  all samples are durable: written and synced.
//   400  "partial write": some lines or samples will never be stored, the text names the first of
//        them, and all others are durable. Without these words nothing is stored.
//   401, 403, 413, 415  who the sender is, what it may do, how much and in which form it may send.
//   503  nothing, or a part, is stored; Retry-After says when to send all of it again.
//
// Databases, retention policies, organisations and buckets are not looked at: the labels say where
// a series belongs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"

namespace tacho::server::interop {

struct InfluxOptions {
  Intake* intake = nullptr;  // Not owned.
  http::HttpGuard guard;
  size_t max_request_bytes = size_t{32} << 20;  // After decompression.
  prometheus::Registry* registry = nullptr;     // Not owned.
  std::function<absl::Time()> now = absl::Now;  // The time of lines that have none.
};

// Thread-safe. Must outlive the HTTP server and the store, which call it.
class InfluxDoor {
 public:
  enum class Version { k1, k2 };

  explicit InfluxDoor(InfluxOptions options);

  std::vector<http::Route> Routes();
  // Answers when the store has settled the request.
  void Handle(Version version, const http::HttpRequest& request,
              const http::ResponderPtr& responder);

 private:
  const InfluxOptions options_;
  prometheus::Counter& samples_;
  prometheus::Counter& strings_;
};

}  // namespace tacho::server::interop

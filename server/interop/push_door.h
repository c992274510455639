// Pushes of short jobs over HTTP, as a Pushgateway takes them
// (https://github.com/prometheus/pushgateway, README.md, "API"):
//
//   POST    /metrics/job/JOB{/LABEL/VALUE}  stores the body's lines; series of the same names end
//   PUT     the same path                   stores them; all other series of the group end
//   DELETE  the same path                   all series of the group end
//
//   200  everything is durable: written and synced. 202 after a DELETE.
//   400  the path or the body is wrong, and nothing is stored; or some samples will never be
//   stored;
//        the body says why, and all others are durable.
//   401, 403, 413, 415  who the sender is, what it may do, how much and in which form it may send.
//   503  nothing, or a part, is stored; Retry-After says when to push again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"
#include "server/interop/push_groups.h"

namespace tacho::server::interop {

struct PushDoorOptions {
  Intake* intake = nullptr;  // Not owned.
  http::HttpGuard guard;
  size_t max_request_bytes = size_t{32} << 20;  // After decompression.
  PushGroupsOptions groups;
  prometheus::Registry* registry = nullptr;  // Not owned.
  std::function<absl::Time()> now = absl::Now;
  std::function<absl::Time()> monotonic = MonotonicNow;
};

// A push as its request has it. In a cluster the owner of the group's job takes it, since it knows
// what the group had before.
struct PushedRequest {
  absl::string_view method;  // "POST".
  absl::string_view path;    // Percent-decoded.
  absl::string_view content_type;
  absl::string_view content_encoding;
  absl::string_view body;
};

// Thread-safe, but for Start() and Stop(). Must outlive the HTTP server and the store, which call
// it.
class PushDoor {
 public:
  explicit PushDoor(PushDoorOptions options);

  // Ends groups that expire, now and then, until Stop().
  void Start();
  void Stop();

  std::vector<http::Route> Routes();
  using Answer = std::function<void(http::HttpResponse)>;

  // Answers when the store has settled the request, here or at another member of the cluster.
  void Handle(const http::HttpRequest& request, const http::ResponderPtr& responder);
  // The same for a sender that may write, and always here. `request` is not used after this has
  // returned.
  void Store(const PushedRequest& request, const Sender& sender, Answer answer);
  // One look for groups that have expired. Those whose end is not stored come again.
  void EndDue();

 private:
  // The shard of another member that the push is passed on to.
  std::optional<uint32_t> ShardElsewhere(const PushedRequest& request, const Sender& sender) const;
  // The lines of a request with its forms checked; none for a DELETE.
  absl::StatusOr<PushedLines> ReadLines(const PushedRequest& request, const storage::Labels& group,
                                        int64_t time_ns) const;

  const PushDoorOptions options_;
  PushGroups groups_;
  prometheus::Counter& samples_;
  prometheus::Gauge& known_groups_;
  RepeatingThread thread_;
};

}  // namespace tacho::server::interop

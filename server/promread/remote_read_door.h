// Remote read of Prometheus over HTTP: POST /api/v1/read, so that PromQL works on the history here.
//
//   200  the answer, in the form that the request accepts: SAMPLES or STREAMED_XOR_CHUNKS.
//   400  the request cannot be read; the body says where.
//   401, 403, 415  who asks and whether it may read; a form that is not served.
//   413  a limit: of the request, of query.max_series or max_samples, or of time. The body says how
//        to ask for less.
//   421  in a cluster: another collector keeps what is asked for (kept_jobs.h).
//   503  too many reads wait or too many queries are at work, or the collector drains.
//
// Prometheus sends a read for each panel of a dashboard at once, and never again: what is refused
// is missing in its answer. So reads wait for each other, as they do at Prometheus' own server
// (storage.remote.read-concurrent-limit).
//
// A stream that fails after its first frame is cut, so that no reader takes it for whole.
// https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/cluster/membership.h"
#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/promread/read_answer.h"
#include "server/query/query_service.h"

namespace tacho::server::promread {

// The most reads that wait. Each holds its request.
inline constexpr size_t kMaxWaitingReads = 128;

// Thread-safe. A request is a query: it needs the role read, sees the jobs of its caller, takes one
// of query.max_concurrent workers, of which reads take half at most, ends at query.timeout, waiting
// included, or when its client goes, and is drained and counted by `queries` as "prometheus.Read".
class RemoteReadDoor {
 public:
  // Its answers are also counted by form in the registry of `queries`.
  // Not owned; must outlive the door, as the door must outlive the HTTP server and `queries`'
  // Drain(). So must `membership`; null: there is no cluster.
  RemoteReadDoor(query::QueryService* queries, http::HttpGuard guard,
                 const cluster::Membership* membership = nullptr);

  std::vector<http::Route> Routes();
  // Returns at once; a worker answers.
  void Handle(http::HttpRequest request, const http::ResponderPtr& responder)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Call;
  using CallPtr = std::shared_ptr<Call>;

  // Gives workers to calls that wait, as far as they may have some.
  void StartWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if a worker has taken the call.
  absl::Status Start(const CallPtr& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next call that may start, which counts as running then; null: none.
  CallPtr TakeWaiting() ABSL_LOCKS_EXCLUDED(mutex_);

  query::QueryService* const queries_;
  const http::HttpGuard guard_;
  const cluster::Membership* const membership_;
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Counter& samples_answers_;
  prometheus::Counter& chunks_answers_;
  HeldBytes held_;
  absl::Mutex mutex_;
  std::deque<CallPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order of their requests.
  uint32_t running_ ABSL_GUARDED_BY(mutex_) = 0;         // Calls that have a worker.
};

}  // namespace tacho::server::promread

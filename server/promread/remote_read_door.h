// Remote read of Prometheus over HTTP: POST /api/v1/read, so that PromQL works on the history here.
//
//   200  the answer, in the form that the request accepts: SAMPLES or STREAMED_XOR_CHUNKS.
//   400  the request cannot be read; the body says where.
//   401, 403, 415  who asks and whether it may read; a form that is not served.
//   413  a limit: of the request, of query.max_series or max_samples, or of time. The body says how
//        to ask for less.
//   503  too many reads wait or too many queries are at work, or the collector drains; or a member
//        of the cluster that is needed cannot be reached.
//
// Reads wait for each other (read_queue.h), as they do at Prometheus' own server
// (storage.remote.read-concurrent-limit).
//
// In a cluster any member answers: it asks those that keep what is asked for. A request with
// ?members=own gets what this one keeps.
//
// A stream that fails after its first frame is cut, so that no reader takes it for whole.
// https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <memory>
#include <vector>

#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/promread/elsewhere.h"
#include "server/promread/read_answer.h"
#include "server/promread/read_queue.h"
#include "server/query/query_service.h"

namespace tacho::server::promread {

// Thread-safe. A request is a query: it needs the role read, sees the jobs of its caller, takes one
// of query.max_concurrent workers, of which reads take half at most, ends at query.timeout, waiting
// included, or when its client goes, and is drained and counted by `queries` as "prometheus.Read".
class RemoteReadDoor {
 public:
  // Its answers are also counted by form in the registry of `queries`.
  // Not owned; must outlive the door, as the door must outlive the HTTP server and `queries`'
  // Drain(). So must what `members` has.
  RemoteReadDoor(query::QueryService* queries, http::HttpGuard guard, Members members = {});

  std::vector<http::Route> Routes();
  // Returns at once; a worker answers.
  void Handle(http::HttpRequest request, const http::ResponderPtr& responder);

 private:
  class Call;

  query::QueryService* const queries_;
  const http::HttpGuard guard_;
  const Members members_;
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Counter& samples_answers_;
  prometheus::Counter& chunks_answers_;
  HeldBytes held_;
  ReadQueue waiting_;
};

}  // namespace tacho::server::promread

// The part of Prometheus' HTTP API that needs no PromQL: /api/v1/labels, label/<name>/values,
// series, metadata, status/buildinfo and status/tsdb, by GET and by POST of a form, so that tools
// see which names there are.
//
//   200  {"status":"success","data":...}, perhaps with "warnings" that say what is left out.
//   400  bad_data: a parameter is wrong; the text names it.
//   401, 403  who asks and whether it may read.
//   422  execution: a limit, which the text names; and always for query, query_range and
//        query_exemplars, because PromQL is the work of a Prometheus that reads from here.
//   503  unavailable: no worker, or the collector drains. timeout: longer than query.timeout.
//
// Errors are {"status":"error","errorType":"bad_data","error":"..."}.
// https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/promread/elsewhere.h"
#include "server/query/query_service.h"

namespace tacho::server::promread {

// Thread-safe. A request is a query: it needs the role read, sees the jobs of its caller, takes one
// of query.max_concurrent workers (PromQL, which is refused, takes none), ends at query.timeout or
// when its client goes, and is drained and counted by `queries` as "prometheus.Explore".
class ExploreDoor {
 public:
  // `version` is the collector's. `queries` is not owned; it must outlive the door, as the door
  // must outlive the HTTP server and `queries`' Drain(). So must what `members` has. In a cluster
  // the lists have what all members keep, unless the request says members=own; status/tsdb
  // describes this collector, and warns.
  ExploreDoor(query::QueryService* queries, http::HttpGuard guard, std::string version,
              Members members = {});

  std::vector<http::Route> Routes();
  // A worker answers later, unless the head of the request decides.
  void Handle(http::HttpRequest request, const http::ResponderPtr& responder);

 private:
  class Call;

  query::QueryService* const queries_;
  const http::HttpGuard guard_;
  const std::string version_;
  const Members members_;
};

}  // namespace tacho::server::promread

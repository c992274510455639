// What a collector in a cluster can answer of a request for series. These pages read only what it
// keeps itself, so a reader has to ask every member: one that says so with the parameter
// members=own gets what there is here; any other is told what is missing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/cluster/membership.h"
#include "server/http/http_message.h"
#include "server/promread/read_request.h"

namespace tacho::server::promread {

// `membership` may be null: there is no cluster.

// OK if each query names one job, which is kept here, or the reader asks every member.
//   FAILED_PRECONDITION (MISDIRECTED)  another member keeps a job, which the text names, or a query
//                                      may be about jobs of all.
absl::Status CheckKept(const cluster::Membership* membership, const http::HttpRequest& request,
                       const std::vector<ReadQuery>& queries);

// What an answer with lists leaves out; empty: nothing.
std::string LeftOutByCluster(const cluster::Membership* membership,
                             const http::HttpRequest& request);

}  // namespace tacho::server::promread

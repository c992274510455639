// Which members of a cluster have what a tool asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/cluster/membership.h"
#include "server/http/http_message.h"
#include "server/promread/read_request.h"

namespace tacho::server::promread {

// `membership` may be null: there is no cluster.

// Whether this collector may keep rows of the job, and not copies alone.
bool MayKeepJob(const cluster::Membership* membership, absl::string_view job);
// Whether what it has of the job from this host is no copy.
bool KeepsRows(const cluster::Membership* membership, absl::string_view job,
               absl::string_view host);

// The shards of other members that may have what the queries select: only those of the jobs, if
// each query names one. Ascending.
std::vector<uint32_t> OtherShardsOf(const cluster::Membership& membership,
                                    const std::vector<ReadQuery>& queries);

// Whether other members are to be asked, too: not if the request says members=own.
bool AsksOthers(const cluster::Membership* membership, const http::HttpRequest& request);

// What a description of the store leaves out; empty: nothing.
std::string LeftOutByCluster(const cluster::Membership* membership,
                             const http::HttpRequest& request);

}  // namespace tacho::server::promread

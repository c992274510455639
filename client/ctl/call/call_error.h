// How a command reaches the collector, and what it says when a call fails.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/ctl/call/query_client.h"
#include "client/ctl/line/command.h"

namespace tacho::ctl {

inline QueryClient Connect(const Invocation& invocation) {
  const CommonOptions& common = invocation.common;
  return QueryClient({common.address, common.timeout, common.security});
}

// Says on err what failed and what to do about it; returns kUnreachable or kNothing.
int CallError(const Invocation& invocation, const QueryClient& client, const absl::Status& status);

// As CallError, for a call that names `job`: if the collector does not know it, nearest names are
// shown, asked for here if the collector's text has none.
int JobCallError(const Invocation& invocation, QueryClient& client, const std::string& job,
                 const absl::Status& status);

}  // namespace tacho::ctl

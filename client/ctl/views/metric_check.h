// Metric names that somebody typed, against those that a job has.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/call/query_client.h"
#include "client/ctl/line/command.h"

namespace tacho::ctl {

// Says on err which of `wanted` the job does not have, and what it has instead. Returns whether one
// was missing. Where the collector cannot tell, nothing is said.
bool ReportUnknownMetrics(const Invocation& invocation, QueryClient& client, const std::string& job,
                          const std::vector<std::string>& wanted);

}  // namespace tacho::ctl

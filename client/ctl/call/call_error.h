// Connects a command to the collector, and prints errors of its calls.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/ctl/call/query_client.h"
#include "client/ctl/line/command.h"

namespace tacho::ctl {

inline QueryClient Connect(const Invocation& invocation) {
  const CommonOptions& common = invocation.common;
  return QueryClient({common.address, common.timeout, common.security});
}

// Prints what failed and what to do about it; returns kUnreachable or kNothing.
int CallError(const Invocation& invocation, const QueryClient& client, const absl::Status& status);

// As CallError, for a call that names `job`. If the collector does not know the job, similar names
// are printed; they are fetched if the collector's text has none.
int JobCallError(const Invocation& invocation, QueryClient& client, const std::string& job,
                 const absl::Status& status);

// As JobCallError, for a call with a selector. Tells a person who wrote the metric before the job
// what the right order is.
int SelectorCallError(const Invocation& invocation, QueryClient& client,
                      const v1::Selector& selector, const absl::Status& status);

// An addition to an error about a PATTERN of jobs that matches none: the nearest names, or how to
// find the text anywhere in a name. Empty if the collector does not answer or has nothing of the
// kind.
std::string JobPatternHint(QueryClient& client, const std::string& pattern);

// Prints which of the `wanted` metrics the job does not have, with similar names. Returns whether
// one was missing. Prints nothing if the collector does not answer.
bool ReportUnknownMetrics(const Invocation& invocation, QueryClient& client, const std::string& job,
                          const std::vector<std::string>& wanted);

}  // namespace tacho::ctl

// Takes the stacks of the trainers that a request asks for.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "tacho/config/v1/agent.pb.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

struct StacksOptions {
  config::v1::Agent::Requests config;
  std::string rings;           // Directory of rings; empty: there are no trainers.
  std::string proc = "/proc";  // Where the kernel's view is read; signals go to the real processes.
};

// Kernel's view first, as a handler changes it; then all are signalled, so that their stacks are of
// one moment, and then their files are read. `until` is MonotonicNow()'s. A task that cannot be
// read is among the findings, with the reason.
v1::AgentFindings TakeStacks(const StacksOptions& options, const v1::AgentRequest& request,
                             absl::Time until);

}  // namespace tacho::agent

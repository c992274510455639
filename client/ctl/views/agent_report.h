// The answer of 'tachoctl agents', in each format.
#pragma once

#include <ostream>
#include <vector>

#include "client/ctl/line/environment.h"
#include "client/ctl/views/agent_status.h"

namespace tacho::ctl {

// A line an agent, and below it one for each source that fails.
void PrintAgents(const Environment& env, const std::vector<AgentStatus>& agents);

void WriteAgentsJson(std::ostream& out, const std::vector<AgentStatus>& agents);

// One line a source; an agent without sources has one of its own.
void WriteAgentsCsv(std::ostream& out, const std::vector<AgentStatus>& agents);

}  // namespace tacho::ctl

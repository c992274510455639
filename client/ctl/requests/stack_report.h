// The stacks of a job's tasks in groups, as 'hang' shows them.
#pragma once

#include <optional>
#include <ostream>
#include <vector>

#include "client/ctl/line/environment.h"
#include "client/ctl/requests/core_states.h"
#include "tacho/v1/agent_requests.pb.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

void PrintStacks(const Environment& env, const v1::TakeStacksResponse& stacks);
void WriteStacksJson(std::ostream& out, const v1::TakeStacksResponse& stacks,
                     const std::vector<CoreGroup>& cores);
// A line for each task.
void WriteStacksCsv(std::ostream& out, const v1::TakeStacksResponse& stacks);

// What an event "stacks_taken" kept of them; 'hang --last' shows it.
void PrintStacksEvent(const Environment& env, const v1::RecordedEvent& event);
void WriteStacksEventJson(std::ostream& out, const v1::RecordedEvent& event);

}  // namespace tacho::ctl

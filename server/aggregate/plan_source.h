// What the layouts of one source have in common: series that several of them have, as those of a
// task's next attempt, and the counters of both.
#pragma once

#include <span>

#include "server/aggregate/job_state.h"
#include "server/aggregate/latest_copy.h"

namespace tacho::server::aggregate {

// Brings the plans of all layouts of a source up to date, if a layout has come since the last time.
// `rows` and `plans` are of the same layouts; a new plan is empty.
void PlanSource(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans,
                JobState* state);

}  // namespace tacho::server::aggregate

// How far a job is in its plan: the same figure for the collector and for tachoctl.
#pragma once

#include <cstdint>
#include <limits>

namespace tacho {

// Steps done once step `last_step` is. A job that counts from 0, of which one attempt began at step
// 0, ends at the step before the planned number.
constexpr int64_t StepsDone(int64_t last_step, bool from_zero) {
  const bool counts_one_more = from_zero && last_step < std::numeric_limits<int64_t>::max();
  return counts_one_more ? last_step + 1 : last_step;
}

// The share of the plan, which is positive. 1 is all of it; more if the job ran beyond the plan.
constexpr double ProgressRatio(int64_t steps_done, int64_t planned_steps) {
  return static_cast<double>(steps_done) / static_cast<double>(planned_steps);
}

}  // namespace tacho

// TaskMissing: fewer tasks report than there should be.
//
// Definition. A task is missing if it is one of
//   never seen   the attempt's attribute `tasks` is n, fewer than n tasks were ever seen, and it is
//   a
//                number below n that was not; `grace` after half of the tasks that are there were
//                first seen
//   gap          without that attribute: its number lies between the lowest and the highest seen,
//   and
//                such holes are at most a tenth of the numbers (or one), which is no way of
//                numbering
//   gone         it sent rows before, none for gone_after and 5 times the time between rows that
//   tell
//                of progress (step_times.h), has not ended, and half of the tasks still send
// A task whose host's agent is silent is not gone: that is AgentSilent, and nobody knows of the
// task.
//
// Reasons: NeverSeen, Gap, Gone: of the first culprit. Score: 3, 2, 1 in this order, then by
// number. Figures say how many of each. Not judged before any task was seen, and in attempts that
// have ended.
//
// Needs numbered tasks. Cannot tell tasks that are not meant to report, nor, without the attribute,
// that the last ones never came.
//
// Source: our own; the wish: expected against present count, dcgm-exporter issue 348.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct TaskMissingSettings {
  absl::Duration grace = absl::Minutes(3);
  absl::Duration gone_after = absl::Minutes(2);
};

// O(n log n) in tasks.
Finding DetectTaskMissing(const JobWindow& window, const TaskMissingSettings& settings);

}  // namespace tacho::server::conditions

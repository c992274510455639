// Straggling: some hosts hold up all others, step after step.
//
// In synchronous training all leave a step's barrier together, so step times are equal and say
// nothing of who was late. What a task does before the barrier does, and so does its wait in it:
// who comes last waits least.
//
// Definition. For each step that most tasks told of, the lateness of task i is, by what is
// recorded,
//   own time     own_i - median(own),  own = compute + data_wait  (compute recorded)
//   barrier      median(comm_wait) - comm_wait_i                  (only comm_wait)
//   input        data_wait_i - median(data_wait)                  (only data_wait)
//   step time    step_time_i - median(step_time)                  (nothing else; not synchronous)
// with medians over tasks. In each window of `window_steps` steps E_i is the median of the lateness
// of i over its steps, which one slow step does not move. A task straggles in a window if
//   E_i > k * max(1.4826 * MAD(E), 0.01 * T)  and  E_i > (min_ratio - 1) * T
// where T is the median of own, or of step_time (or the time between rows) where own is not
// recorded; and, if comm_wait is recorded, it really comes late: median(comm_wait) - comm_wait_i >
// 0.3 * E_i. It is found straggling if it does so in the newest `windows` windows, all of them. A
// host straggles if a task of it does; the culprit of a host is its worst task.
//
// Score of a culprit: (T + E_i) / T, the median over the windows: 1.3 is 30 % slower than the
// peers, higher is worse. NVIDIA Resiliency Extension's score is its inverse (0.75 there is 1.33
// here).
//
// Reasons: SlowCompute, SlowInput (of own time: whichever is most of it), LateAtBarrier, SlowSteps;
// UnevenWork (info): more than `uneven_share` of all hosts, and at least 3, are slower than most,
// which is rather stages or sequences of uneven length than hardware. "By" in the message says
// which lateness was used. Culprits found straggling in `chronic` other jobs or more are named as
// chronic.
//
// Needs 3 tasks and windows * window_steps steps, with one of the signals above. With step_time
// alone nothing is judged while it is the same on all: who is late cannot be seen then. Cannot tell
// why a host is slow: Throttled, HardwareErrors, MemoryPressure may.
//
// Sources. Section scores as ratios of medians, collectives left out: NVIDIA Resiliency Extension,
// attribution/straggler/reporting.py. Ranking by arrival at the barrier, and most slowness being no
// hardware fault: "Understanding Stragglers in Large Model Training" (OSDI'25); heat maps of own
// time: MegaScale (NSDI'24). Median and MAD hold while less than half are slow. Thresholds are
// ours.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct StragglingSettings {
  uint32_t window_steps = 10;
  uint32_t windows = 3;
  double k = 6;  // Of 10,000 healthy tasks the latest is 4 standard deviations late.
  double min_ratio = 1.1;
  double uneven_share = 0.2;
  uint32_t chronic = 2;
};

// O(tasks * windows * window_steps * log).
Finding DetectStraggling(const JobWindow& window, const StragglingSettings& settings);

}  // namespace tacho::server::conditions

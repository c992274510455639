// One step of a training, from here to the end of the block.
#pragma once

#include <string_view>

#include "client/metric.h"

namespace tacho::client {

class RecorderState;

//   for (int64_t n = 0; n < steps; ++n) {
//     auto step = recorder.Step(n);
//     step.Phase("data");
//     const Batch batch = loader.Next();
//     step.Phase("compute");
//     recorder.Set(loss, TrainOn(batch));
//   }                                       // Here the row of step n is written.
//
// The row has the step's number, the time at which it ended, and beside what was set:
//   step_duration_seconds  from Step() to the end; the step began that long before the row's time
//   step_time_seconds      from the end of the step before to this one's, so that what happens
//                          between two steps is in it; of the first step its duration
//   <phase>_seconds        the time in each phase that the step entered, one after the other
// by a monotonic clock. Time before the first phase is in none.
//
// A step that is left by an exception, or abandoned, writes no row: gauges set in it are dropped,
// counters stay. What it took is in the next step_time_seconds. A step that is begun within another
// one of the same recorder is refused and counted, and does nothing; the outer one goes on. Rows
// committed by hand within a step are rows of their own, with the phases that ended before them.
//
// Not to outlive its recorder, and of the same thread. No allocation and no system call, but for
// the first step and the first use of a phase's name, which declare their metrics.
class [[nodiscard]] StepScope {
 public:
  StepScope(StepScope&& other) noexcept;
  StepScope& operator=(StepScope&&) = delete;
  // Ends the step; abandons it if an exception is on its way out.
  ~StepScope();

  // From now until the next phase or the end of the step, time belongs to this phase. Time of a
  // phase that is entered again is added. Known to conditions and goodput (docs/notation.md):
  //   "data"        data_wait_seconds   waiting for input
  //   "compute"     compute_seconds     own work before the barrier
  //   "comm"        comm_wait_seconds   waiting in collectives
  //   "checkpoint"  checkpoint_seconds
  //   "eval"        eval_seconds
  // Any other name x is recorded as x_seconds; at most 32 names a recorder.
  void Phase(std::string_view name) noexcept;
  // The same for Recorder::StepPhase(name), without looking it up.
  void Phase(Metric phase) noexcept;
  // From now on, time belongs to no phase.
  void EndPhase() noexcept;

  // Writes the row now. Nothing more happens then, also at the end of the block.
  void End() noexcept;
  void Abandon() noexcept;

 private:
  friend class RecorderState;
  friend class Recorder;
  explicit StepScope(RecorderState* state) noexcept;

  RecorderState* state_;  // Null: there is nothing to do.
  int exceptions_;        // On their way when the step began.
};

}  // namespace tacho::client

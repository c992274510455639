// One step of a training, until the end of the block.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "client/collective_scope.h"
#include "client/metric.h"

namespace tacho::client {

class RecorderState;

//   for (int64_t n = 0; n < steps; ++n) {
//     auto step = recorder.Step(n);
//     step.Phase("data");
//     const Batch batch = loader.Next();
//     step.Phase("compute");
//     recorder.Set(loss, TrainOn(batch));
//   }                                       // The row of step n is written here.
//
// The row has the step's number, the time at which it ended, what was set, and:
//   step_duration_seconds  from Step() to the end; the step began that long before the row's time
//   step_time_seconds      from the end of the previous step to the end of this one, which includes
//                          what happens between steps; for the first step, its duration
//   <phase>_seconds        the time in each phase that the step entered, one after the other
//   collective_<name>_…    the time and bytes of each collective (collective_scope.h)
// by a monotonic clock. Time before the first phase belongs to none.
//
// A step that an exception leaves, or that is abandoned, writes no row: its gauges are dropped,
// counters stay, and its time counts in the next step_time_seconds. A step within another step of
// the same recorder is refused and counted, and does nothing; the outer step continues. A row that
// is committed by hand within a step is a separate row, with the phases that ended before it.
//
// Must not outlive its recorder, and belongs to the same thread. Allocates nothing and makes no
// system call, except in the first step and at the first use of a phase's name, which declare
// metrics.
class [[nodiscard]] StepScope {
 public:
  StepScope(StepScope&& other) noexcept;
  StepScope& operator=(StepScope&&) = delete;
  // Ends the step; abandons it if an exception is on its way out.
  ~StepScope();

  // Until the next phase or the end of the step, time belongs to this phase. If a phase is entered
  // again, its times add up. Conditions and goodput know these names (docs/notation.md):
  //   "data"        data_wait_seconds   waiting for input
  //   "compute"     compute_seconds     own work before the barrier
  //   "comm"        comm_wait_seconds   waiting in collectives
  //   "checkpoint"  checkpoint_seconds
  //   "eval"        eval_seconds
  // Any other name x is recorded as x_seconds; at most 32 names a recorder.
  void Phase(std::string_view name) noexcept;
  // The same for a phase from Recorder::StepPhase(name), without a lookup.
  void Phase(Metric phase) noexcept;
  // From now on, time belongs to no phase.
  void EndPhase() noexcept;

  // Begins a collective: see collective_scope.h. `bytes` is what this task contributes or moves; 0:
  // not known. `peer` is the task at the other end, of an exchange between two. At most 16
  // collectives a recorder, where each peer counts as one.
  CollectiveScope Collective(std::string_view name, uint64_t bytes = 0,
                             std::optional<uint32_t> peer = std::nullopt) noexcept;
  // The same for a collective from Recorder::StepCollective(), without a lookup.
  CollectiveScope Collective(CollectiveMetric collective, uint64_t bytes = 0) noexcept;

  // Writes the row now; the end of the block then does nothing.
  void End() noexcept;
  void Abandon() noexcept;

 private:
  friend class RecorderState;
  friend class Recorder;
  explicit StepScope(RecorderState* state) noexcept;

  RecorderState* state_;  // Null: nothing to do.
  int exceptions_;        // Exceptions in flight when the step began.
};

}  // namespace tacho::client

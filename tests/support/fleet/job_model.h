// What the steps of one synchronous job are like: all tasks compute, wait for the slowest in the
// collective, and go on together. Pure: the same questions get the same answers.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/fleet/fleet_spec.h"

namespace tacho::fleet {

// How a task is off its usual self.
struct TaskTrouble {
  double compute_factor = 1;
  double input_factor = 1;
  bool disagrees = false;
  bool nan = false;  // At this step.
};

// What one task records of a step. Seconds.
struct TaskStep {
  double data_wait = 0;
  double compute = 0;
  double comm_wait = 0;
  double loss = 0;
  double grad_norm = 0;  // Its own gradient's, before those of all are added up.
  double param_norm = 0;
};

struct JobStep {
  double seconds = 0;             // From this step's start to the next one's; of all tasks alike.
  double checkpoint_seconds = 0;  // The part for these.
  double eval_seconds = 0;
  double learning_rate = 0;
  double update_norm = 0;
  double accuracy = 0;
  double eval_loss = 0;  // If eval_seconds > 0.
  double eval_accuracy = 0;
  std::vector<TaskStep> tasks;
};

class JobModel {
 public:
  JobModel(JobSpec spec, uint64_t seed) : spec_(std::move(spec)), seed_(seed) {}

  // `trouble` has an entry a task. `loss_factor` multiplies the loss of all; `poisoned`: a NaN has
  // been in an earlier step's gradient, so that the weights are NaN.
  JobStep Step(int64_t step, const std::vector<TaskTrouble>& trouble, double loss_factor,
               bool poisoned) const;

  const JobSpec& spec() const { return spec_; }

  static constexpr int64_t kTokensPerTask = 8192;  // A step.
  static constexpr double kParameters = 7e9;
  static constexpr double kPeakFlops = 9.89e14;  // One chip: H100 SXM, bf16, dense (data sheet).
  static constexpr double kUtilization = 0.42;   // Share of it in a step without trouble.

 private:
  double Noise(uint64_t what, uint64_t who, int64_t step) const;
  TaskStep Times(uint32_t task, int64_t step, const TaskTrouble& trouble) const;
  void FillCurves(int64_t step, double loss_factor, JobStep* out) const;

  const JobSpec spec_;
  const uint64_t seed_;
};

}  // namespace tacho::fleet

#include "tests/support/fleet/job_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/fleet/noise.h"

namespace tacho::fleet {
namespace {

// Shares of a step's time; the rest is the optimizer's.
constexpr double kComputeShare = 0.74;
constexpr double kDataShare = 0.04;
constexpr double kCommShare = 0.17;
constexpr double kSpread = 0.015;       // How compute times spread, as a share of them.
constexpr double kCheckpointSteps = 3;  // How long it blocks, in steps.
constexpr double kEvalSteps = 4;
constexpr double kPeakLearningRate = 3e-4;
constexpr double kWarmupSteps = 100;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

enum Quantity : uint64_t { kCompute, kData, kComm, kLoss, kGrad, kUpdate, kEval, kAccuracy };

// Falls as a power of the step, as the published scaling laws have it, to a floor.
double LossCurve(double step) { return 1.7 + 9.0 * std::pow(step / 40 + 1, -0.55); }

}  // namespace

double JobModel::Noise(uint64_t what, uint64_t who, int64_t step) const {
  return Gauss(Key(seed_, what, who, static_cast<uint64_t>(step)));
}

TaskStep JobModel::Times(uint32_t task, int64_t step, const TaskTrouble& trouble) const {
  TaskStep out;
  const double base = spec_.step_seconds;
  const double compute = 1 + kSpread * std::clamp(Noise(kCompute, task, step), -3.0, 3.0);
  out.compute = base * kComputeShare * compute * trouble.compute_factor;
  const double data = std::exp(0.2 * std::clamp(Noise(kData, task, step), -3.0, 3.0));
  out.data_wait = base * kDataShare * data * trouble.input_factor;
  return out;
}

void JobModel::FillCurves(int64_t step, double loss_factor, JobStep* out) const {
  const auto at = static_cast<double>(step);
  const double planned = std::max(static_cast<double>(spec_.steps), kWarmupSteps + 1);
  const double warm = std::min(1.0, (at + 1) / kWarmupSteps);
  const double done = std::clamp((at - kWarmupSteps) / (planned - kWarmupSteps), 0.0, 1.0);
  out->learning_rate =
      kPeakLearningRate * warm * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * done)));
  const double loss = LossCurve(at);
  out->update_norm = 12 * out->learning_rate * (1 + 0.02 * Noise(kUpdate, 0, step));
  out->accuracy = std::clamp(0.85 - 0.09 * loss + 0.005 * Noise(kAccuracy, 0, step), 0.0, 1.0);
  if (out->eval_seconds > 0) {
    out->eval_loss = loss * loss_factor * 1.02 + 0.005 * Noise(kEval, 0, step);
    out->eval_accuracy = std::clamp(out->accuracy - 0.01, 0.0, 1.0);
  }
}

JobStep JobModel::Step(int64_t step, const std::vector<TaskTrouble>& trouble, double loss_factor,
                       bool poisoned) const {
  JobStep out;
  out.tasks.reserve(trouble.size());
  double slowest = 0;
  for (uint32_t task = 0; task < trouble.size(); ++task) {
    out.tasks.push_back(Times(task, step, trouble[task]));
    slowest = std::max(slowest, out.tasks.back().compute + out.tasks.back().data_wait);
  }
  const double base = spec_.step_seconds;
  const double comm = base * kCommShare * (1 + 0.03 * std::clamp(Noise(kComm, 0, step), -3.0, 3.0));
  if (spec_.checkpoint_every > 0 && step > 0 && step % spec_.checkpoint_every == 0) {
    out.checkpoint_seconds = kCheckpointSteps * base;
  }
  if (spec_.eval_every > 0 && step > 0 && step % spec_.eval_every == 0) {
    out.eval_seconds = kEvalSteps * base;
  }
  out.seconds = slowest + comm + base * (1 - kComputeShare - kDataShare - kCommShare) +
                out.checkpoint_seconds + out.eval_seconds;
  FillCurves(step, loss_factor, &out);
  const double mean_loss = LossCurve(static_cast<double>(step)) * loss_factor;
  const double weights = 110 + 4 * std::sqrt(static_cast<double>(step) + 1);
  for (uint32_t task = 0; task < trouble.size(); ++task) {
    TaskStep& of = out.tasks[task];
    // The last to come to the barrier waits least.
    of.comm_wait = comm + slowest - of.compute - of.data_wait;
    const bool nan = poisoned || trouble[task].nan;
    of.loss = nan ? kNan : mean_loss * (1 + 0.01 * Noise(kLoss, task, step));
    const double gradient = 0.3 * loss_factor * std::sqrt(mean_loss / loss_factor);
    of.grad_norm = nan ? kNan : gradient * std::exp(0.1 * Noise(kGrad, task, step));
    of.param_norm = poisoned ? kNan : weights * (trouble[task].disagrees ? 1.01 : 1.0);
  }
  if (poisoned) out.eval_loss = out.update_norm = kNan;
  return out;
}

}  // namespace tacho::fleet

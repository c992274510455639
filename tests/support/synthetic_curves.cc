// The curves of a synthetic fleet: what a task's rows say of the model.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/synthetic_noise.h"
#include "tests/support/synthetic_window.h"

namespace tacho::testing {
namespace {

using server::conditions::Signal;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kWarmUpSteps = 100;
constexpr double kPeakRate = 3e-4;

// A power law with an irreducible part, as losses of language models follow.
double Loss(double step) { return 1.5 + 3.5 / std::sqrt(1 + step / 200); }

double LearningRate(double step) {
  if (step < kWarmUpSteps) return kPeakRate * (step + 1) / kWarmUpSteps;
  const double part = std::min(1.0, (step - kWarmUpSteps) / 20'000);
  return kPeakRate * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * part)));
}

double WeightNorm(double step) { return 100 * (1 + 0.1 * std::log1p(step / 100)); }

}  // namespace

void SyntheticFleet::FillCurves(uint32_t task, size_t index, int64_t time_ns,
                                server::conditions::Tracks* tracks) const {
  const Steps& steps = StepsOf(task);
  const auto number = static_cast<double>(options_.first_step + index);
  // All tasks have the same: it is averaged over them.
  const auto gauss = [&](NoiseStream stream) {
    return SyntheticGauss(options_.seed, stream, 0, index);
  };
  const double loss_noise = 1 + options_.noise * gauss(NoiseStream::kLoss);
  double loss = Loss(number) * loss_noise;
  double grad = 1.2 * std::pow(1 + number / 100, -0.2) *
                std::exp(10 * options_.noise * gauss(NoiseStream::kGrad));
  double weights = WeightNorm(number);
  double eval_extra = 0;
  double checksum = static_cast<double>(0xfedcba) + std::fmod(number * 7919, 65536);
  double update = LearningRate(number) * weights * 10;
  for (const Fault& fault : faults_) {
    // The first step that was left by all after it.
    const auto first = std::partition_point(
        steps.begin(), steps.end(), [&](const Step& step) { return step.end < fault.at_seconds; });
    const auto at = static_cast<double>(first - steps.begin());
    const double since = static_cast<double>(index) - at;
    if (since < 0 || steps[index].end >= fault.until_seconds) continue;
    const bool hit = Hits(fault, task);
    switch (fault.kind) {
      case FaultKind::kNan:
        if (hit || since >= 2) loss = grad = kNaN;
        break;
      case FaultKind::kLossSpike:
        if (since < 5) loss *= 1 + fault.amount;
        break;
      case FaultKind::kDiverge:
        loss *= std::exp(since / fault.amount);
        break;
      case FaultKind::kPlateau:
        loss = Loss(options_.first_step + at) * loss_noise;
        break;
      case FaultKind::kOscillate:
        loss *= 1 + (index % 2 == 0 ? fault.amount : -fault.amount);
        break;
      case FaultKind::kGradExplode:
        grad *= std::exp(since / fault.amount);
        break;
      case FaultKind::kGradVanish:
        grad *= std::exp(-since / fault.amount);
        break;
      case FaultKind::kFrozen:
        update = 0;
        weights = WeightNorm(options_.first_step + at);
        break;
      case FaultKind::kOverfit:
        eval_extra += fault.amount * since / 100;
        break;
      case FaultKind::kReplicaDiffers:
        if (hit) checksum += fault.amount;
        break;
      default:
        break;
    }
  }
  const auto add = [&](Signal signal, double value) {
    Add(signal,
        {.time_ns = time_ns,
         .step = options_.first_step + static_cast<int64_t>(index),
         .value = value},
        tracks);
  };
  add(Signal::kLoss, loss);
  add(Signal::kAccuracy, std::exp(-loss / 2));
  add(Signal::kLearningRate, LearningRate(number));
  add(Signal::kGradNorm, grad);
  add(Signal::kParamNorm, weights);
  add(Signal::kUpdateNorm, update);
  add(Signal::kReplicaScalar, checksum);
  if (steps[index].eval > 0) {
    const double eval_loss =
        Loss(number) * 1.02 * (1 + options_.noise * gauss(NoiseStream::kEval)) + eval_extra;
    add(Signal::kEvalLoss, eval_loss);
    add(Signal::kEvalAccuracy, std::exp(-eval_loss / 2));
  }
}

}  // namespace tacho::testing

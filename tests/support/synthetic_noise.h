// Noise that is a function of what it belongs to, so that no order of drawing matters; and the
// names that metrics have in synthetic windows.
#pragma once

#include <cstdint>
#include <string>

#include "server/conditions/window/signal.h"

namespace tacho::testing {

enum class NoiseStream : uint64_t {
  kCompute,
  kData,
  kHost,
  kDelay,
  kLoss,
  kGrad,
  kEval,
  kChip,
  kCpu,
  kComm
};

// In (0, 1).
double SyntheticUniform(uint64_t seed, NoiseStream stream, uint64_t subject, uint64_t index);
// Gaussian noise with mean 0 and standard deviation 1.
double SyntheticGauss(uint64_t seed, NoiseStream stream, uint64_t subject, uint64_t index);

// The standard name: "step_time_seconds", "chip_duty_cycle_ratio", ….
std::string SyntheticMetric(server::conditions::Signal signal);

}  // namespace tacho::testing

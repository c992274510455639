#include "tests/support/synthetic_noise.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::testing {
namespace {

using server::conditions::Signal;

// SplitMix64, public domain: https://prng.di.unimi.it/splitmix64.c
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

double ToUnit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

uint64_t Hash(uint64_t seed, NoiseStream stream, uint64_t subject, uint64_t index) {
  return Mix(Mix(Mix(Mix(seed) ^ static_cast<uint64_t>(stream)) ^ subject) ^ index);
}

}  // namespace

double SyntheticUniform(uint64_t seed, NoiseStream stream, uint64_t subject, uint64_t index) {
  return ToUnit(Hash(seed, stream, subject, index));
}

double SyntheticGauss(uint64_t seed, NoiseStream stream, uint64_t subject, uint64_t index) {
  const uint64_t bits = Hash(seed, stream, subject, index);
  return std::sqrt(-2 * std::log(ToUnit(bits))) *
         std::cos(2 * std::numbers::pi * ToUnit(Mix(bits)));
}

std::string SyntheticMetric(Signal signal) {
  switch (signal) {
    case Signal::kStepTime:
    case Signal::kDataWait:
    case Signal::kCompute:
    case Signal::kCommWait:
      return absl::StrCat(server::conditions::SignalName(signal), "_seconds");
    case Signal::kCheckpointTime:
      return "checkpoint_seconds";
    case Signal::kEvalTime:
      return "eval_seconds";
    case Signal::kReplicaScalar:
      return "weights_checksum";
    case Signal::kChipBusy:
      return "chip_duty_cycle_ratio";
    case Signal::kChipTensorBusy:
      return "chip_tensor_active_ratio";
    case Signal::kHbmUsed:
      return "chip_hbm_used_bytes";
    case Signal::kHbmTotal:
      return "chip_hbm_total_bytes";
    case Signal::kChipPower:
      return "chip_power_watts";
    case Signal::kChipPowerLimit:
      return "chip_power_limit_watts";
    case Signal::kChipTemperature:
      return "chip_temperature_celsius";
    case Signal::kChipClock:
      return "chip_clock_hertz";
    case Signal::kChipClockMax:
      return "chip_clock_max_hertz";
    case Signal::kThrottleReasons:
      return "chip_throttle_reasons";
    case Signal::kEccUncorrected:
      return "chip_ecc_uncorrected_total";
    case Signal::kEccCorrected:
      return "chip_ecc_corrected_total";
    case Signal::kXid:
      return "chip_xid_errors_total";
    case Signal::kLinkErrors:
      return "chip_link_errors_total";
    case Signal::kRemappedRows:
      return "chip_remapped_rows_total";
    case Signal::kHostMemoryAvailable:
      return "host_memory_available_bytes";
    case Signal::kHostMemoryTotal:
      return "host_memory_total_bytes";
    case Signal::kHostCpuBusy:
      return "host_cpu_busy_ratio";
    default:
      return std::string(server::conditions::SignalName(signal));
  }
}

}  // namespace tacho::testing

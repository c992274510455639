#include "tests/support/fleet/chip_model.h"

#include <algorithm>
#include <cmath>

#include "tests/support/fleet/noise.h"

namespace tacho::fleet {
namespace {

constexpr v1::MetricType kGauge = v1::METRIC_TYPE_GAUGE;
constexpr v1::MetricType kCounter = v1::METRIC_TYPE_COUNTER;

// An H100 SXM5 by its data sheet, and how one looks in a training.
constexpr double kPowerLimit = 700;
constexpr double kTrainingPower = 560;
constexpr double kWaitingPower = 270;
constexpr double kIdlePower = 75;
constexpr double kMaxClock = 1.98e9;
constexpr double kTrainingHbm = 0.74 * kHbmBytes;
constexpr double kDriverHbm = 0.6e9;
// NVML's clocksEventReasonHwThermalSlowdown and …SwPowerCap.
constexpr double kThermalSlowdown = 0x40;
constexpr double kPowerCap = 0x4;

}  // namespace

const std::array<ChipMetric, kChipMetrics> kChipMetricList = {{
    {"chip_duty_cycle_ratio", kGauge, "1", "Share of time in which the chip had work."},
    {"chip_tensor_active_ratio", kGauge, "1", "Share of time in which its matrix units had."},
    {"chip_idle_seconds", kGauge, "s", "Since the chip last worked."},
    {"chip_hbm_used_bytes", kGauge, "By", "Memory of the chip in use."},
    {"chip_hbm_total_bytes", kGauge, "By", "Memory of the chip."},
    {"chip_power_watts", kGauge, "W", "Power drawn."},
    {"chip_power_limit_watts", kGauge, "W", "Power that may be drawn."},
    {"chip_temperature_celsius", kGauge, "Cel", "Temperature."},
    {"chip_clock_hertz", kGauge, "Hz", "Clock."},
    {"chip_clock_max_hertz", kGauge, "Hz", "Highest clock."},
    {"chip_throttle_reasons", kGauge, "1", "Why the clock is down, as bits of NVML's."},
    {"chip_ecc_uncorrected_total", kCounter, "1", "Memory errors that were not corrected."},
    {"chip_ecc_corrected_total", kCounter, "1", "Memory errors that were corrected."},
    {"chip_xid_errors_total", kCounter, "1", "Errors that the driver reported."},
    {"chip_link_errors_total", kCounter, "1", "Errors of links between chips."},
    {"chip_remapped_rows_total", kCounter, "1", "Rows of memory that were replaced."},
}};

std::array<double, kChipMetrics> SampleChip(const ChipState& chip, uint64_t key, int64_t time_ns) {
  const auto when = static_cast<uint64_t>(time_ns);
  const auto noise = [&](uint64_t what) {
    return std::clamp(Gauss(Key(key, what, 0, when)), -3.0, 3.0);
  };
  double duty = 0, tensor = 0, power = kIdlePower, heat = 36;
  if (chip.activity == Activity::kTraining) {
    duty = std::min(1.0, 0.965 + 0.008 * noise(1));
    tensor = 0.52 * chip.tensor_share * (1 + 0.015 * noise(2));
    power = kTrainingPower * std::pow(chip.clock_factor, 1.5);
    heat = 63;
  } else if (chip.activity == Activity::kWaiting) {
    duty = 1;
    power = kWaitingPower;
    heat = 48;
  }
  if (chip.hot) heat = 88;
  const double idle = chip.activity == Activity::kIdle
                          ? static_cast<double>(time_ns - chip.idle_since_ns) / 1e9
                          : 0;
  const double held = chip.allocated ? kTrainingHbm + chip.leaked_bytes : kDriverHbm;
  const bool throttled = chip.clock_factor < 1;
  return {duty, tensor, std::max(0.0, idle),
          // The allocator of a framework holds its pool: nothing but a leak moves it.
          std::min(held, kHbmBytes * 0.999), kHbmBytes, power * (1 + 0.01 * noise(3)), kPowerLimit,
          heat + 0.7 * noise(4),
          kMaxClock * (chip.activity == Activity::kIdle ? 0.6 : 0.985) * chip.clock_factor,
          kMaxClock, throttled ? (chip.hot ? kThermalSlowdown : kPowerCap) : 0,
          static_cast<double>(chip.ecc_uncorrected), static_cast<double>(chip.ecc_corrected),
          static_cast<double>(chip.xid_errors), 0, static_cast<double>(chip.remapped_rows)};
}

}  // namespace tacho::fleet

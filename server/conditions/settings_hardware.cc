#include "server/conditions/settings_hardware.h"

#include "absl/time/time.h"

namespace tacho::server::conditions {
namespace {

using Config = config::v1::ConditionsHardware;

}  // namespace

MemoryLeakSettings SettingsOf(const Config::MemoryLeak& config) {
  return {.horizon = absl::Nanoseconds(config.horizon()),
          .critical_left = absl::Nanoseconds(config.critical_left()),
          .warmup = absl::Nanoseconds(config.warmup()),
          .min_span = absl::Nanoseconds(config.min_span()),
          .min_growth = config.min_growth(),
          .min_tau = config.min_tau()};
}

MemoryPressureSettings SettingsOf(const Config::MemoryPressure& config) {
  return {.host_free = config.host_free(),
          .device_used = config.device_used(),
          .span = absl::Nanoseconds(config.span())};
}

ThrottledSettings SettingsOf(const Config::Throttled& config) {
  return {.min_clock = config.min_clock(),
          .min_busy = config.min_busy(),
          .hot_celsius = config.hot_celsius(),
          .capped = config.capped(),
          .span = absl::Nanoseconds(config.span())};
}

HardwareErrorsSettings SettingsOf(const Config::HardwareErrors& config) {
  return {.span = absl::Nanoseconds(config.span()),
          .link_errors = config.link_errors(),
          .corrected_errors = config.corrected_errors()};
}

}  // namespace tacho::server::conditions

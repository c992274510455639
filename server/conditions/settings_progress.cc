#include "server/conditions/settings_progress.h"

#include "absl/time/time.h"

namespace tacho::server::conditions {
namespace {

using Config = config::v1::ConditionsProgress;

}  // namespace

StalledSettings SettingsOf(const Config::Stalled& config) {
  return {.floor = absl::Nanoseconds(config.floor()),
          .factor = config.factor(),
          .startup = absl::Nanoseconds(config.startup()),
          .compile = absl::Nanoseconds(config.compile()),
          .restore = absl::Nanoseconds(config.restore()),
          .checkpoint = absl::Nanoseconds(config.checkpoint()),
          .eval = absl::Nanoseconds(config.eval())};
}

StragglingSettings SettingsOf(const Config::Straggling& config) {
  return {.window_steps = config.window_steps(),
          .windows = config.windows(),
          .k = config.k(),
          .min_ratio = config.min_ratio(),
          .uneven_share = config.uneven_share(),
          .chronic = config.chronic()};
}

InputBoundSettings SettingsOf(const Config::InputBound& config) {
  return {.span = absl::Nanoseconds(config.span()),
          .min_idle = config.min_idle(),
          .min_wait = config.min_wait()};
}

LowUtilizationSettings SettingsOf(const Config::LowUtilization& config) {
  return {.span = absl::Nanoseconds(config.span()),
          .min_mfu = config.min_mfu(),
          .min_tensor = config.min_tensor(),
          .min_busy = config.min_busy()};
}

SlowerThanBaselineSettings SettingsOf(const Config::SlowerThanBaseline& config) {
  return {.steps = config.steps(),
          .min_ratio = config.min_ratio(),
          .min_baseline_steps = config.min_baseline_steps()};
}

ThroughputDroppedSettings SettingsOf(const Config::ThroughputDropped& config) {
  return {.min_ratio = config.min_ratio(),
          .min_before = config.min_before(),
          .min_after = config.min_after()};
}

TaskMissingSettings SettingsOf(const Config::TaskMissing& config) {
  return {.grace = absl::Nanoseconds(config.grace()),
          .gone_after = absl::Nanoseconds(config.gone_after())};
}

AgentSilentSettings SettingsOf(const Config::AgentSilent& config) {
  return {.disconnected_after = absl::Nanoseconds(config.disconnected_after()),
          .silent_after = absl::Nanoseconds(config.silent_after())};
}

TrainerSilentSettings SettingsOf(const Config::TrainerSilent& config) {
  return {.silent_after = absl::Nanoseconds(config.silent_after()),
          .phase_limit = absl::Nanoseconds(config.phase_limit())};
}

ClockSkewedSettings SettingsOf(const Config::ClockSkewed& config) {
  return {.max_offset = absl::Nanoseconds(config.max_offset())};
}

DataLossSettings SettingsOf(const Config::DataLoss& config) {
  return {.recent = absl::Nanoseconds(config.recent())};
}

}  // namespace tacho::server::conditions

// The configuration's defaults are those that the detectors document, and each key reaches its
// detector.
#include "server/conditions/settings_progress.h"

#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/detectors_progress.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::conditions {
namespace {

config::v1::ConditionsProgress Parsed(const char* text) {
  config::v1::Collector config;
  const absl::Status status = config::ParseYaml(text, "f.yaml", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config.conditions().progress();
}

TEST(SettingsProgressTest, DefaultsAreThoseOfTheDetectors) {
  const config::v1::ConditionsProgress config = Parsed("");
  const StalledSettings stalled = SettingsOf(config.stalled());
  EXPECT_EQ(stalled.floor, StalledSettings{}.floor);
  EXPECT_EQ(stalled.factor, StalledSettings{}.factor);
  EXPECT_EQ(stalled.startup, StalledSettings{}.startup);
  EXPECT_EQ(stalled.compile, StalledSettings{}.compile);
  EXPECT_EQ(stalled.restore, StalledSettings{}.restore);
  EXPECT_EQ(stalled.checkpoint, StalledSettings{}.checkpoint);
  EXPECT_EQ(stalled.eval, StalledSettings{}.eval);
  const StragglingSettings straggling = SettingsOf(config.straggling());
  EXPECT_EQ(straggling.window_steps, StragglingSettings{}.window_steps);
  EXPECT_EQ(straggling.windows, StragglingSettings{}.windows);
  EXPECT_EQ(straggling.k, StragglingSettings{}.k);
  EXPECT_EQ(straggling.min_ratio, StragglingSettings{}.min_ratio);
  EXPECT_EQ(straggling.uneven_share, StragglingSettings{}.uneven_share);
  EXPECT_EQ(straggling.chronic, StragglingSettings{}.chronic);
  const InputBoundSettings input = SettingsOf(config.input_bound());
  EXPECT_EQ(input.span, InputBoundSettings{}.span);
  EXPECT_EQ(input.min_idle, InputBoundSettings{}.min_idle);
  EXPECT_EQ(input.min_wait, InputBoundSettings{}.min_wait);
  const LowUtilizationSettings low = SettingsOf(config.low_utilization());
  EXPECT_EQ(low.span, LowUtilizationSettings{}.span);
  EXPECT_EQ(low.min_mfu, LowUtilizationSettings{}.min_mfu);
  EXPECT_EQ(low.min_tensor, LowUtilizationSettings{}.min_tensor);
  EXPECT_EQ(low.min_busy, LowUtilizationSettings{}.min_busy);
  const SlowerThanBaselineSettings slower = SettingsOf(config.slower_than_baseline());
  EXPECT_EQ(slower.steps, SlowerThanBaselineSettings{}.steps);
  EXPECT_EQ(slower.min_ratio, SlowerThanBaselineSettings{}.min_ratio);
  EXPECT_EQ(slower.min_baseline_steps, SlowerThanBaselineSettings{}.min_baseline_steps);
  const ThroughputDroppedSettings dropped = SettingsOf(config.throughput_dropped());
  EXPECT_EQ(dropped.min_ratio, ThroughputDroppedSettings{}.min_ratio);
  EXPECT_EQ(dropped.min_before, ThroughputDroppedSettings{}.min_before);
  EXPECT_EQ(dropped.min_after, ThroughputDroppedSettings{}.min_after);
  EXPECT_EQ(SettingsOf(config.task_missing()).grace, TaskMissingSettings{}.grace);
  EXPECT_EQ(SettingsOf(config.task_missing()).gone_after, TaskMissingSettings{}.gone_after);
  const AgentSilentSettings agent = SettingsOf(config.agent_silent());
  EXPECT_EQ(agent.disconnected_after, AgentSilentSettings{}.disconnected_after);
  EXPECT_EQ(agent.silent_after, AgentSilentSettings{}.silent_after);
  const TrainerSilentSettings trainer = SettingsOf(config.trainer_silent());
  EXPECT_EQ(trainer.silent_after, TrainerSilentSettings{}.silent_after);
  EXPECT_EQ(trainer.phase_limit, TrainerSilentSettings{}.phase_limit);
  EXPECT_EQ(SettingsOf(config.clock_skewed()).max_offset, ClockSkewedSettings{}.max_offset);
  EXPECT_EQ(SettingsOf(config.data_loss()).recent, DataLossSettings{}.recent);
}

TEST(SettingsProgressTest, TheTableHasEachConditionOnceWithItsKeys) {
  const std::vector<Detector> table = ProgressDetectors(Parsed(
      "conditions: {progress: {stalled: {for: 7s, severity: info, floor: 30s, enabled: false}}}"));
  ASSERT_EQ(table.size(), 11u);
  EXPECT_EQ(table[0].name, "Stalled");
  EXPECT_FALSE(table[0].enabled);
  EXPECT_EQ(table[0].hold_for, absl::Seconds(7));
  EXPECT_EQ(table[0].severity, Severity::kInfo);
  EXPECT_TRUE(table[1].enabled);
  EXPECT_EQ(table[1].severity, std::nullopt);
  JobWindow empty;
  empty.now_ns = 1'000'000'000;
  for (const Detector& detector : table) {
    EXPECT_FALSE(detector.detect(empty).present) << detector.name;
  }
}

}  // namespace
}  // namespace tacho::server::conditions

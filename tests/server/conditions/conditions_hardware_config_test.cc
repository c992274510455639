// The defaults stand twice, in the configuration's schema and in the settings: they must agree.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/detectors_hardware.h"
#include "server/conditions/settings_hardware.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::conditions {
namespace {

config::v1::ConditionsHardware Parse(const std::string& text) {
  config::v1::Collector collector;
  const absl::Status status = config::ParseYaml(text, "test.yaml", &collector);
  EXPECT_TRUE(status.ok()) << status;
  return collector.conditions().hardware();
}

TEST(HardwareConfigTest, DefaultsAreThoseOfTheDetectors) {
  const auto config = Parse("");
  const MemoryLeakSettings leak = SettingsOf(config.memory_leak());
  EXPECT_EQ(leak.horizon, MemoryLeakSettings().horizon);
  EXPECT_EQ(leak.critical_left, MemoryLeakSettings().critical_left);
  EXPECT_EQ(leak.warmup, MemoryLeakSettings().warmup);
  EXPECT_EQ(leak.min_span, MemoryLeakSettings().min_span);
  EXPECT_EQ(leak.min_growth, MemoryLeakSettings().min_growth);
  EXPECT_EQ(leak.min_tau, MemoryLeakSettings().min_tau);
  const MemoryPressureSettings pressure = SettingsOf(config.memory_pressure());
  EXPECT_EQ(pressure.host_free, MemoryPressureSettings().host_free);
  EXPECT_EQ(pressure.device_used, MemoryPressureSettings().device_used);
  EXPECT_EQ(pressure.span, MemoryPressureSettings().span);
  const ThrottledSettings throttled = SettingsOf(config.throttled());
  EXPECT_EQ(throttled.min_clock, ThrottledSettings().min_clock);
  EXPECT_EQ(throttled.min_busy, ThrottledSettings().min_busy);
  EXPECT_EQ(throttled.hot_celsius, ThrottledSettings().hot_celsius);
  EXPECT_EQ(throttled.capped, ThrottledSettings().capped);
  EXPECT_EQ(throttled.span, ThrottledSettings().span);
  const HardwareErrorsSettings errors = SettingsOf(config.hardware_errors());
  EXPECT_EQ(errors.span, HardwareErrorsSettings().span);
  EXPECT_EQ(errors.link_errors, HardwareErrorsSettings().link_errors);
  EXPECT_EQ(errors.corrected_errors, HardwareErrorsSettings().corrected_errors);
}

TEST(HardwareConfigTest, RowsHaveTheNamesAndTimesOfTheConfiguration) {
  const std::vector<Detector> rows = HardwareDetectors(Parse(R"(
conditions:
  hardware:
    throttled: {enabled: false, for: 3m, clear_after: 7m, severity: info}
)"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].name, "MemoryLeak");
  EXPECT_TRUE(rows[0].enabled);
  EXPECT_EQ(rows[0].severity, std::nullopt);
  EXPECT_EQ(rows[1].name, "MemoryPressure");
  EXPECT_EQ(rows[3].name, "HardwareErrors");
  EXPECT_EQ(rows[2].name, "Throttled");
  EXPECT_FALSE(rows[2].enabled);
  EXPECT_EQ(rows[2].hold_for, absl::Minutes(3));
  EXPECT_EQ(rows[2].clear_after, absl::Minutes(7));
  EXPECT_EQ(rows[2].severity, Severity::kInfo);
  for (const Detector& row : rows) EXPECT_FALSE(row.detect(JobWindow()).judged) << row.name;
}

}  // namespace
}  // namespace tacho::server::conditions

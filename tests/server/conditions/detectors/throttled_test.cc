#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using tacho::testing::FaultKind;
using tacho::testing::SyntheticFleet;
using tacho::testing::SyntheticHost;

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kGigahertz = 1e9;

// One chip over ten minutes, a value of each every ten seconds; what is absent is not recorded.
struct Chip {
  std::optional<double> clock = 1.4 * kGigahertz;
  std::optional<double> clock_max = 2 * kGigahertz;
  std::optional<double> reasons;
  std::optional<double> celsius;
  std::optional<double> watts;
  std::optional<double> busy = 0.95;
  const char* reasons_metric = "chip_throttle_reasons";

  JobWindow Window() const {
    JobWindow window;
    window.now_ns = 600 * kSecond;
    ChipWindow chip = {.host = "host-1", .chip = "0"};
    Add(Signal::kChipClock, "chip_clock_hertz", clock, &chip);
    Add(Signal::kChipClockMax, "chip_clock_max_hertz", clock_max, &chip);
    Add(Signal::kThrottleReasons, reasons_metric, reasons, &chip);
    Add(Signal::kChipTemperature, "chip_temperature_celsius", celsius, &chip);
    Add(Signal::kChipPower, "chip_power_watts", watts, &chip);
    Add(Signal::kChipPowerLimit, "chip_power_limit_watts",
        watts.has_value() ? std::optional(700.0) : std::nullopt, &chip);
    Add(Signal::kChipBusy, "chip_duty_cycle_ratio", busy, &chip);
    window.chips.push_back(chip);
    return window;
  }

 private:
  static void Add(Signal signal, const char* metric, std::optional<double> value,
                  ChipWindow* chip) {
    if (!value.has_value()) return;
    Track track = {.metric = metric};
    for (int64_t t = 0; t <= 600; t += 10) track.points.push_back({t * kSecond, 0, *value});
    chip->tracks[signal] = {track};
  }
};

TEST(ThrottledTest, ALowClockWithAReasonIsThrottled) {
  struct Case {
    Chip chip;
    const char* reason;
  };
  const Case cases[] = {
      {{.reasons = 0x40}, "Thermal"},
      {{.reasons = 0x20}, "Thermal"},
      {{.reasons = 0x4}, "PowerCap"},
      {{.reasons = 0x80}, "PowerBrake"},
      {{.reasons = 0x8}, "HardwareSlowdown"},
      {{.reasons = 0x10 | 0x4}, "PowerCap"},
      {{.celsius = 90}, "Hot"},
      {{.watts = 699}, "NearPowerLimit"},
      {{.reasons = 1, .reasons_metric = "tpu_throttle_score"}, "ThrottleScore"},
  };
  for (const Case& one : cases) {
    const Finding finding = DetectThrottled(one.chip.Window(), Defaults());
    EXPECT_TRUE(finding.present) << one.reason;
    EXPECT_EQ(finding.reason, one.reason);
    EXPECT_EQ(finding.severity, Severity::kWarning);
    ASSERT_EQ(finding.culprits.size(), 1u);
    EXPECT_DOUBLE_EQ(finding.culprits[0].score, 0.7);
  }
}

TEST(ThrottledTest, WhatIsNoThrottling) {
  const Chip cases[] = {
      {},                                           // Low, but nothing says why.
      {.reasons = 0},                               //
      {.reasons = 0x1},                             // Idle.
      {.reasons = 0x2 | 0x10 | 0x100},              // Asked for.
      {.clock = 1.9 * kGigahertz, .reasons = 0x4},  // Power is capped, at nearly full speed.
      {.reasons = 0x40, .busy = 0.05},              // Has nothing to do.
      {.clock = std::nullopt, .reasons = 0x4},      // Nobody knows how far.
  };
  for (const Chip& chip : cases) {
    const Finding finding = DetectThrottled(chip.Window(), Defaults());
    EXPECT_TRUE(finding.judged);
    EXPECT_FALSE(finding.present) << finding.message;
  }
}

TEST(ThrottledTest, WithoutAClockACertainReasonIsEnough) {
  const Chip hot = {.clock = std::nullopt, .reasons = 0x40};
  EXPECT_TRUE(DetectThrottled(hot.Window(), Defaults()).present);
  const Chip tpu = {.clock = std::nullopt, .reasons = 5, .reasons_metric = "tpu_throttle_score"};
  EXPECT_TRUE(DetectThrottled(tpu.Window(), Defaults()).present);
  const Chip mild = {.clock = std::nullopt, .reasons = 1, .reasons_metric = "tpu_throttle_score"};
  EXPECT_FALSE(DetectThrottled(mild.Window(), Defaults()).present);
}

TEST(ThrottledTest, WithoutAHighestClockItIsTheHighestSeen) {
  Chip chip = {.clock_max = std::nullopt, .reasons = 0x40};
  JobWindow window = chip.Window();
  EXPECT_FALSE(DetectThrottled(window, Defaults()).present);  // It never ran faster.
  window.chips[0].tracks[Signal::kChipClock][0].points[0].value = 2 * kGigahertz;
  EXPECT_TRUE(DetectThrottled(window, Defaults()).present);
}

TEST(ThrottledTest, ASingleValueIsNot) {
  Chip chip = {.clock = 2 * kGigahertz, .reasons = 0x40};
  JobWindow window = chip.Window();
  window.chips[0].tracks[Signal::kChipClock][0].points.back().value = kGigahertz;
  EXPECT_FALSE(DetectThrottled(window, Defaults()).present);
}

TEST(ThrottledTest, OldValuesAreNotJudged) {
  JobWindow window = Chip{.reasons = 0x40}.Window();
  window.now_ns += 300 * kSecond;
  EXPECT_FALSE(DetectThrottled(window, Defaults()).judged);
  EXPECT_FALSE(DetectThrottled(JobWindow(), Defaults()).judged);
}

TEST(ThrottledTest, TellsWhatItCostsTheSteps) {
  const SyntheticFleet fleet(
      {.tasks = 8}, {{.kind = FaultKind::kThrottle, .host = 2, .at_seconds = 600, .amount = 0.4}});
  EXPECT_FALSE(DetectThrottled(fleet.At(590), Defaults()).present);
  const Finding finding = DetectThrottled(fleet.At(780), Defaults());
  ASSERT_TRUE(finding.present) << finding.message;
  EXPECT_EQ(finding.culprits[0].host, SyntheticHost(2));
  EXPECT_EQ(finding.severity, Severity::kCritical);  // Steps take half as long again.
  EXPECT_EQ(finding.figures.back().name, "step_time_cost");
  EXPECT_GT(finding.figures.back().value, 0.2);
  EXPECT_NEAR(static_cast<double>(finding.since_ns - SyntheticFleet::Time(600)) / 1e9, 0, 15);
}

}  // namespace
}  // namespace tacho::server::conditions

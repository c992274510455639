#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/scenario.h"

namespace tacho::server::conditions {
namespace {

using tacho::testing::Fault;
using tacho::testing::FaultKind;
using tacho::testing::FleetOptions;
using tacho::testing::SyntheticFleet;
using tacho::testing::SyntheticHost;
using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr int64_t kSecond = 1'000'000'000;
constexpr double kTotal = 80 * kGiB;

// One chip whose used memory is `used(seconds since the attempt began)`, every ten seconds.
JobWindow ChipWith(double until_seconds, const std::function<double(double)>& used) {
  JobWindow window;
  window.attempt_started_ns = 1'700'000'000 * kSecond;
  window.now_ns = window.attempt_started_ns + static_cast<int64_t>(until_seconds * 1e9);
  ChipWindow chip = {.host = "host-1", .chip = "3"};
  Track total = {.metric = "chip_hbm_total_bytes"};
  Track track = {.metric = "chip_hbm_used_bytes"};
  for (double t = 0; t <= until_seconds; t += 10) {
    const int64_t time = window.attempt_started_ns + static_cast<int64_t>(t * 1e9);
    total.points.push_back({.time_ns = time, .value = kTotal});
    track.points.push_back({.time_ns = time, .value = used(t)});
  }
  chip.tracks[Signal::kHbmTotal] = {total};
  chip.tracks[Signal::kHbmUsed] = {track};
  window.chips.push_back(chip);
  return window;
}

TEST(MemoryLeakTest, SaysHowMuchTimeIsLeftAndHowSureThatIs) {
  // 20 GiB and 10 GiB an hour: after an hour 50 GiB, five hours, are left.
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.05 * kGiB);
  const auto window =
      ChipWith(3600, [&](double t) { return 20 * kGiB + 10 * kGiB * t / 3600 + noise(random); });
  const Finding finding = DetectMemoryLeak(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "DeviceMemory");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host-1");
  EXPECT_EQ(finding.culprits[0].chip, "3");
  EXPECT_EQ(finding.culprits[0].metric, "chip_hbm_used_bytes");
  ASSERT_EQ(finding.figures.size(), 6u);
  EXPECT_NEAR(finding.figures[0].value, 10 * kGiB / 3600, 0.03 * 10 * kGiB / 3600);
  EXPECT_NEAR(finding.figures[3].value, 5 * 3600, 0.05 * 5 * 3600);
  EXPECT_LT(finding.figures[4].value, finding.figures[3].value);
  EXPECT_GT(finding.figures[5].value, finding.figures[3].value);
  EXPECT_THAT(finding.message, HasSubstr("chip 3 of host-1 grows by "));
}

TEST(MemoryLeakTest, IsCriticalIfLittleTimeIsLeft) {
  const auto window = ChipWith(1800, [](double t) { return 60 * kGiB + 30 * kGiB * t / 3600; });
  const Finding finding = DetectMemoryLeak(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.severity, Severity::kCritical);
}

// A cache that fills within the first hours, to 60 of 80 GiB.
TEST(MemoryLeakTest, MemoryThatFillsAndLevelsOffIsNeverCritical) {
  int present = 0;
  for (double until = 900; until <= 4 * 3600; until += 100) {
    const auto filling = [](double t) { return 60 * kGiB * (1 - std::exp(-t / 1500)); };
    const Finding finding = DetectMemoryLeak(ChipWith(until, filling), Defaults());
    EXPECT_NE(finding.present && finding.severity == Severity::kCritical, true) << until;
    present += finding.present ? 1 : 0;
    // The same, but the cache is full at once.
    const auto stops = [](double t) { return std::min(50.0, 20 + t / 100) * kGiB; };
    const Finding linear = DetectMemoryLeak(ChipWith(until, stops), Defaults());
    EXPECT_FALSE(linear.present && linear.severity == Severity::kCritical) << until;
  }
  EXPECT_LE(present, 2) << "growth that slows down is told from a leak";
}

TEST(MemoryLeakTest, SeesALeakBelowLongTeethAfterAFewOfThem) {
  // Teeth of 20 minutes and 20 GiB, whose troughs rise by 1 GiB each.
  const auto teeth = [](double t) {
    return 20 * kGiB + std::floor(t / 1200) * kGiB + 20 * kGiB * std::fmod(t, 1200) / 1200;
  };
  EXPECT_FALSE(DetectMemoryLeak(ChipWith(3600, teeth), Defaults()).present);
  const Finding finding = DetectMemoryLeak(ChipWith(8.5 * 1200, teeth), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  // At 48 GiB at the peak, 32 GiB are left: 32 teeth.
  EXPECT_NEAR(finding.figures[3].value, 32 * 1200, 3 * 1200);
}

TEST(MemoryLeakTest, SeesALeakBelowTheTeethOfCheckpoints) {
  const auto window = ChipWith(7200, [](double t) {
    const double tooth = std::fmod(t, 120) < 30 ? 6 * kGiB : 0;
    return 20 * kGiB + 4 * kGiB * t / 3600 + tooth;
  });
  EXPECT_TRUE(DetectMemoryLeak(window, Defaults()).present);
}

TEST(MemoryLeakTest, SeesALeakThatBeganLateInTheWindow) {
  const auto window = ChipWith(
      10800, [](double t) { return 20 * kGiB + (t < 9000 ? 0 : 20 * kGiB * (t - 9000) / 3600); });
  EXPECT_TRUE(DetectMemoryLeak(window, Defaults()).present);
}

struct HealthyCase {
  const char* name;
  std::function<double(double)> used;
};

class MemoryHealthyTest : public ::testing::TestWithParam<HealthyCase> {};

TEST_P(MemoryHealthyTest, IsNoLeakAtAnyTime) {
  for (double until = 900; until <= 4 * 3600; until += 300) {
    const Finding finding = DetectMemoryLeak(ChipWith(until, GetParam().used), Defaults());
    EXPECT_TRUE(finding.judged);
    EXPECT_FALSE(finding.present) << "after " << until << " s: " << finding.message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, MemoryHealthyTest,
    ::testing::Values(
        HealthyCase{"constant", [](double) { return 60 * kGiB; }},
        HealthyCase{"warm_up", [](double at) { return 60 * kGiB * (1 - std::exp(-at / 90)); }},
        HealthyCase{"one_step", [](double at) { return (at < 2000 ? 40 : 60) * kGiB; }},
        HealthyCase{"teeth",
                    [](double at) { return 40 * kGiB + 20 * kGiB * std::fmod(at, 200) / 200; }},
        HealthyCase{"too_slow", [](double at) { return 40 * kGiB + 0.01 * kGiB * at / 3600; }},
        HealthyCase{"shrinks", [](double at) { return 60 * kGiB - 5 * kGiB * at / 3600; }}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(MemoryLeakTest, NoiseIsNoLeak) {
  int present = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 2 * kGiB);
    const auto window = ChipWith(3600, [&](double) { return 40 * kGiB + noise(random); });
    present += DetectMemoryLeak(window, Defaults()).present ? 1 : 0;
  }
  EXPECT_EQ(present, 0);
}

TEST(MemoryLeakTest, LooksAtThisAttemptOnly) {
  JobWindow window = ChipWith(3600, [](double t) { return 20 * kGiB + 10 * kGiB * t / 3600; });
  window.attempt_started_ns = window.now_ns - 300 * kSecond;
  EXPECT_FALSE(DetectMemoryLeak(window, Defaults()).judged);
}

TEST(MemoryLeakTest, WithoutMemoryNothingIsJudged) {
  EXPECT_FALSE(DetectMemoryLeak(JobWindow(), Defaults()).judged);
  EXPECT_FALSE(DetectMemoryPressure(JobWindow(), Defaults()).judged);
}

TEST(MemoryLeakTest, NamesTheHostOfAFleetWhoseMemoryLeaks) {
  const SyntheticFleet fleet(
      {.tasks = 8, .chips_per_host = 1},
      {{.kind = FaultKind::kHostLeak, .host = 5, .at_seconds = 600, .amount = 64 * 1024.0 * 1024}});
  EXPECT_FALSE(DetectMemoryLeak(fleet.At(600), Defaults()).present);
  const Finding finding = DetectMemoryLeak(fleet.At(2400), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "HostMemory");
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, SyntheticHost(5));
}

TEST(MemoryPressureTest, IsAboutTheWholeOfTheSpan) {
  const auto full = [](double) { return 0.985 * kTotal; };
  const Finding finding = DetectMemoryPressure(ChipWith(600, full), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "DeviceMemory");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  const auto mostly = [](double t) { return (std::fmod(t, 60) == 0 ? 0.9 : 0.985) * kTotal; };
  EXPECT_FALSE(DetectMemoryPressure(ChipWith(600, mostly), Defaults()).present);
  EXPECT_TRUE(DetectMemoryPressure(ChipWith(600, mostly), Defaults()).judged);
  const auto brim = [](double) { return 0.995 * kTotal; };
  EXPECT_EQ(DetectMemoryPressure(ChipWith(600, brim), Defaults()).severity, Severity::kCritical);
  EXPECT_FALSE(DetectMemoryPressure(ChipWith(600, full), With("device_used: 1")).present);
}

TEST(MemoryPressureTest, OldValuesAreNotJudged) {
  JobWindow window = ChipWith(600, [](double) { return 0.99 * kTotal; });
  window.now_ns += 120 * kSecond;
  EXPECT_FALSE(DetectMemoryPressure(window, Defaults()).judged);
}

TEST(MemoryPressureTest, AHostIsJudgedByWhatIsAvailable) {
  JobWindow window;
  window.now_ns = 100 * kSecond;
  HostWindow host = {.host = "h"};
  host.tracks[Signal::kHostMemoryTotal] = {{.metric = "t", .points = {{0, 0, 100 * kGiB}}}};
  host.tracks[Signal::kHostMemoryAvailable] = {
      {.metric = "a", .points = {{80 * kSecond, 0, 4 * kGiB}, {90 * kSecond, 0, 3 * kGiB}}}};
  window.hosts.push_back(host);
  const Finding finding = DetectMemoryPressure(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "HostMemory");
  EXPECT_NEAR(finding.figures[0].value, 0.04, 1e-12);
  EXPECT_FALSE(DetectMemoryPressure(window, With("host_free: 0.04")).present);
}

}  // namespace
}  // namespace tacho::server::conditions

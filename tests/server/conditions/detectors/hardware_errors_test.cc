#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/xid.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using tacho::testing::FaultKind;
using tacho::testing::SyntheticFleet;
using tacho::testing::SyntheticHost;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

// Chips of host "h", one value a minute, the newest now.
JobWindow WindowOf(const std::vector<std::pair<Signal, Track>>& chips) {
  JobWindow window;
  window.now_ns = 10'000 * kSecond;
  for (size_t i = 0; i < chips.size(); ++i) {
    ChipWindow chip = {.host = "h", .chip = std::to_string(i)};
    chip.tracks[chips[i].first] = {chips[i].second};
    window.chips.push_back(chip);
  }
  return window;
}

Track Values(const char* metric, const std::vector<double>& values) {
  Track track = {.metric = metric};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto ago = static_cast<int64_t>(values.size() - 1 - i) * 60;
    track.points.push_back({(10'000 - ago) * kSecond, 0, values[i]});
  }
  return track;
}

JobWindow OneChip(Signal signal, const char* metric, const std::vector<double>& values) {
  return WindowOf({{signal, Values(metric, values)}});
}

TEST(HardwareErrorsTest, CountsWhatGrew) {
  const Finding finding = DetectHardwareErrors(
      OneChip(Signal::kEccUncorrected, "chip_ecc_uncorrected_total", {7, 7, 9, 9}), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "UncorrectedEcc");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.figures[0].value, 2);
  EXPECT_EQ(finding.since_ns, 9'940 * kSecond);
  EXPECT_EQ(finding.culprits[0].chip, "0");
}

TEST(HardwareErrorsTest, WhatWasCountedBeforeIsPast) {
  for (const auto& values : {std::vector<double>{7, 7, 7}, std::vector<double>{7}}) {
    const Finding finding = DetectHardwareErrors(
        OneChip(Signal::kEccUncorrected, "chip_ecc_uncorrected_total", values), Defaults());
    EXPECT_TRUE(finding.judged);
    EXPECT_FALSE(finding.present);
  }
  std::vector<double> old(40, 3.0);
  old[0] = 0;  // Grew 38 minutes ago.
  EXPECT_FALSE(DetectHardwareErrors(OneChip(Signal::kRemappedRows, "r", old), Defaults()).present);
}

TEST(HardwareErrorsTest, ACounterThatWasResetCountsFromZero) {
  const auto reset = OneChip(Signal::kRemappedRows, "chip_remapped_rows_total", {50, 50, 0, 0});
  EXPECT_FALSE(DetectHardwareErrors(reset, Defaults()).present);
  const auto grown = OneChip(Signal::kRemappedRows, "chip_remapped_rows_total", {50, 50, 2, 3});
  EXPECT_EQ(DetectHardwareErrors(grown, Defaults()).figures[0].value, 3);
}

TEST(HardwareErrorsTest, ADcgmGaugeTellsTheNumber) {
  const Finding finding = DetectHardwareErrors(
      OneChip(Signal::kXid, "DCGM_FI_DEV_XID_ERRORS", {0, 13, 13, 79, 0}), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "Xid");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.figures[0].value, 2);
  EXPECT_THAT(finding.message, HasSubstr("number 79 (fell off the bus)"));
  // The first value in the window may be an error of last week.
  EXPECT_FALSE(
      DetectHardwareErrors(OneChip(Signal::kXid, "DCGM_FI_DEV_XID_ERRORS", {79, 79}), Defaults())
          .present);
  const Finding own =
      DetectHardwareErrors(OneChip(Signal::kXid, "DCGM_FI_DEV_XID_ERRORS", {0, 43}), Defaults());
  EXPECT_EQ(own.severity, Severity::kInfo);
  const Finding counted =
      DetectHardwareErrors(OneChip(Signal::kXid, "chip_xid_errors_total", {0, 43}), Defaults());
  EXPECT_EQ(counted.severity, Severity::kWarning);
  EXPECT_EQ(counted.figures[0].value, 43);
}

TEST(HardwareErrorsTest, AFewCorrectedErrorsAreNormal) {
  const auto few = OneChip(Signal::kEccCorrected, "chip_ecc_corrected_total", {0, 50, 99});
  EXPECT_FALSE(DetectHardwareErrors(few, Defaults()).present);
  const auto many = OneChip(Signal::kEccCorrected, "chip_ecc_corrected_total", {0, 50, 100});
  EXPECT_EQ(DetectHardwareErrors(many, Defaults()).severity, Severity::kInfo);
}

TEST(HardwareErrorsTest, TheWorstKindComesFirstThenTheMost) {
  const Finding finding =
      DetectHardwareErrors(WindowOf({{Signal::kEccCorrected, Values("c", {0, 5000})},
                                     {Signal::kLinkErrors, Values("l", {0, 5})},
                                     {Signal::kLinkErrors, Values("l", {0, 7})},
                                     {Signal::kEccUncorrected, Values("u", {0, 1})}}),
                           Defaults());
  std::vector<std::string> chips;
  for (const Culprit& culprit : finding.culprits) chips.push_back(culprit.chip);
  EXPECT_EQ(chips, (std::vector<std::string>{"3", "2", "1", "0"}));
  EXPECT_THAT(finding.message, HasSubstr("3 more"));
}

TEST(HardwareErrorsTest, ManyChipsMakeNoLongList) {
  std::vector<std::pair<Signal, Track>> chips(40, {Signal::kLinkErrors, Values("l", {0, 5})});
  EXPECT_EQ(DetectHardwareErrors(WindowOf(chips), Defaults()).culprits.size(), kMaxCulprits);
}

TEST(HardwareErrorsTest, WithoutCountersNothingIsJudged) {
  EXPECT_FALSE(DetectHardwareErrors(JobWindow(), Defaults()).judged);
}

TEST(HardwareErrorsTest, NamesTheHostOfAFleet) {
  const SyntheticFleet fleet(
      {.tasks = 16}, {{.kind = FaultKind::kXid, .host = 9, .at_seconds = 600, .amount = 2}});
  EXPECT_FALSE(DetectHardwareErrors(fleet.At(600), Defaults()).present);
  const Finding finding = DetectHardwareErrors(fleet.At(700), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.culprits[0].host, SyntheticHost(9));
}

TEST(XidTest, KnowsTheOnesThatMatter) {
  ASSERT_NE(FindXid(48), nullptr);
  EXPECT_EQ(FindXid(48)->severity, Severity::kCritical);
  EXPECT_EQ(FindXid(31)->severity, Severity::kInfo);
  EXPECT_EQ(FindXid(4711), nullptr);
}

}  // namespace
}  // namespace tacho::server::conditions

// InputBound, LowUtilization, SlowerThanBaseline, ThroughputDropped.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using testing::SyntheticFleet;

JobWindow At(double seconds, FleetOptions options, std::vector<Fault> faults) {
  options.tasks = 6;
  return SyntheticFleet(std::move(options), std::move(faults), 2000).At(seconds);
}

TEST(InputBoundTest, NeedsBothIdleChipsAndWaiting) {
  const Fault input = {.kind = FaultKind::kInputBound, .at_seconds = 100, .amount = 0.3};
  const Finding finding = DetectInputBound(At(600, {}, {input}), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "WaitingForInput");
  EXPECT_NEAR(finding.figures[0].value, 0.3, 0.03);
  // Chips that idle for another reason, and waiting that does not make them idle.
  EXPECT_FALSE(
      DetectInputBound(At(600, {}, {{.kind = FaultKind::kLowUse, .amount = 0.3}}), Defaults())
          .present);
  JobWindow busy = At(600, {}, {input});
  for (ChipWindow& chip : busy.chips) {
    for (Point& point : chip.tracks[Signal::kChipBusy][0].points) point.value = 0.99;
  }
  EXPECT_FALSE(DetectInputBound(busy, Defaults()).present);
  busy.chips.clear();
  EXPECT_EQ(DetectInputBound(busy, Defaults()).reason, "WaitingForInputChipsUnknown");
}

TEST(InputBoundTest, StepTimesFromRowsWillDo) {
  FleetOptions options;
  options.omit = {Signal::kStepTime};
  EXPECT_TRUE(DetectInputBound(At(600, options, {{.kind = FaultKind::kInputBound, .amount = 0.3}}),
                               Defaults())
                  .present);
}

// On all tasks, from the first step on.
void AddStage(const std::string& metric, double seconds, JobWindow* window) {
  for (TaskWindow& task : window->tasks) {
    Track track = *FindTrack(task.tracks, Signal::kDataWait);
    track.metric = metric;
    for (Point& point : track.points) point.value = seconds;
    task.tracks[Signal::kInputStage].push_back(std::move(track));
  }
}

TEST(InputBoundTest, NamesTheStageThatLimits) {
  const Fault input = {.kind = FaultKind::kInputBound, .at_seconds = 100, .amount = 0.3};
  JobWindow window = At(600, {}, {input});
  AddStage("input_stage_read_seconds", 0.2, &window);
  AddStage("input_stage_to_device_seconds", 0.35, &window);
  AddStage("input_stage_decode_seconds", 0.1, &window);
  const Finding finding = DetectInputBound(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "WaitingForToDevice");
  EXPECT_THAT(finding.message,
              ::testing::HasSubstr("the stage to_device of the input limits, with 0.35 s a step"));
  EXPECT_EQ(finding.figures.back().name, "input_stage_seconds");
  EXPECT_NEAR(finding.figures.back().value, 0.35, 1e-9);
  EXPECT_EQ(finding.culprits.size(), window.hosts.size()) << "the hosts stay the culprits";
}

TEST(InputBoundTest, StagesThatDoNotExplainTheWaitAreNotNamed) {
  const Fault input = {.kind = FaultKind::kInputBound, .at_seconds = 100, .amount = 0.3};
  JobWindow window = At(600, {}, {input});
  AddStage("input_stage_read_seconds", 0.01, &window);
  AddStage("input_stage_decode_seconds", kNan, &window);
  EXPECT_EQ(DetectInputBound(window, Defaults()).reason, "WaitingForInput");
  // Busy stages behind a queue that is never empty: nobody waits.
  window = At(600, {}, {});
  AddStage("input_stage_decode_seconds", 0.9, &window);
  EXPECT_FALSE(DetectInputBound(window, Defaults()).present);
}

TEST(InputBoundTest, NotJudgedWithoutStepsOrWaits) {
  FleetOptions options;
  options.omit = {Signal::kDataWait};
  EXPECT_FALSE(DetectInputBound(At(600, options, {}), Defaults()).judged);
  EXPECT_FALSE(
      DetectInputBound(At(1500, {}, {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 300}}),
                       Defaults())
          .judged)
      << "it does not step";
}

TEST(LowUtilizationTest, ByMfuFirst) {
  FleetOptions options;
  options.attributes = {
      {"flops_per_step", "1e15"}, {"device_count", "24"}, {"device_peak_flops", "1e15"}};
  // 1e15 / (0.94 s * 24 * 1e15) = 4.4 %.
  const Finding finding = DetectLowUtilization(At(600, options, {}), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "LowMfu");
  EXPECT_NEAR(finding.figures[0].value, 0.044, 0.002);
  EXPECT_FALSE(DetectLowUtilization(At(600, options, {}), With("min_mfu: 0.01")).present);
  options.attributes["device_peak_flops"] = "unknown";
  EXPECT_FALSE(DetectLowUtilization(At(600, options, {}), Defaults()).present);
}

TEST(LowUtilizationTest, TensorUnitsThenDutyCycleAndChipsThatDoNothing) {
  JobWindow window = At(600, {}, {{.kind = FaultKind::kLowUse, .amount = 0.12}});
  EXPECT_EQ(DetectLowUtilization(window, Defaults()).reason, "LowTensorActivity");
  for (ChipWindow& chip : window.chips) chip.tracks.erase(Signal::kChipTensorBusy);
  EXPECT_EQ(DetectLowUtilization(window, Defaults()).reason, "LowDutyCycle");
  const Finding idle =
      DetectLowUtilization(At(600, {}, {{.kind = FaultKind::kIdleChip, .host = 4}}), Defaults());
  EXPECT_EQ(idle.reason, "IdleChips");
  ASSERT_EQ(idle.culprits.size(), 1u);
  EXPECT_EQ(idle.culprits[0].host, "host0004");
  EXPECT_EQ(idle.culprits[0].chip, "0");
}

TEST(LowUtilizationTest, CompilingAndStandingStillAreNot) {
  EXPECT_FALSE(DetectLowUtilization(At(300, {.compile_seconds = 600}, {}), Defaults()).judged);
  EXPECT_FALSE(DetectLowUtilization(At(650, {.compile_seconds = 600}, {}), Defaults()).present);
  EXPECT_FALSE(
      DetectLowUtilization(At(1500, {}, {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 300}}),
                           Defaults())
          .judged);
}

std::vector<Baseline> Of(const char* job, uint32_t attempt, uint64_t steps, double median) {
  return {{.job = job, .attempt = attempt, .steps = steps, .step_time_median = median}};
}

TEST(SlowerThanBaselineTest, AgainstEarlierAttemptsAndTheSameConfiguration) {
  FleetOptions options = {.attempt = 2, .baselines = Of("synthetic", 1, 500, 0.7)};
  EXPECT_EQ(DetectSlowerThanBaseline(At(600, options, {}), Defaults()).reason, "EarlierAttempts");
  options.baselines = Of("another", 0, 500, 0.7);
  const Finding finding = DetectSlowerThanBaseline(At(600, options, {}), Defaults());
  EXPECT_EQ(finding.reason, "SameConfiguration");
  EXPECT_NEAR(finding.figures[2].value, 0.94 / 0.7, 0.03);
  options.baselines = Of("another", 0, 500, 0.9);
  EXPECT_FALSE(DetectSlowerThanBaseline(At(600, options, {}), Defaults()).present) << "only 4 %";
}

TEST(SlowerThanBaselineTest, BaselinesThatSayNothing) {
  for (const auto& baselines :
       {Of("another", 0, 10, 0.5), Of("synthetic", 2, 500, 0.5), Of("another", 0, 500, 0),
        Of("another", 0, 500, std::nan("")), std::vector<Baseline>()}) {
    const FleetOptions options = {.attempt = 2, .baselines = baselines};
    EXPECT_FALSE(DetectSlowerThanBaseline(At(600, options, {}), Defaults()).judged);
  }
  FleetOptions options = {.attempt = 2, .baselines = Of("another", 0, 500, 0.5)};
  EXPECT_FALSE(DetectSlowerThanBaseline(At(70, options, {}), Defaults()).judged)
      << "too few steps yet";
}

TEST(ThroughputDroppedTest, TellsSinceWhichStep) {
  const Fault slow = {.kind = FaultKind::kSlowdown, .at_seconds = 700, .amount = 0.4};
  FleetOptions options;
  options.tasks = 6;
  const SyntheticFleet fleet(options, {slow});
  const Finding finding = DetectThroughputDropped(fleet.At(760), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "TokensRate");
  EXPECT_NEAR(static_cast<double>(*finding.step), *fleet.StepAt(700), 2);
  options.omit = {Signal::kTokens};
  EXPECT_EQ(DetectThroughputDropped(At(760, options, {slow}), Defaults()).reason, "StepTime");
  options.omit = {Signal::kTokens, Signal::kStepTime};
  EXPECT_EQ(DetectThroughputDropped(At(760, options, {slow}), Defaults()).reason, "StepTime");
}

// A step every 10 s, for hours.
std::vector<double> Steps(double hours, const std::function<double(double minute)>& seconds,
                          uint64_t seed = 1) {
  return Noisy(Curved(static_cast<size_t>(hours * 360), [&](double i) { return seconds(i / 6); }),
               0.02, seed);
}

TEST(ThroughputDroppedTest, ASlowDriftIsTold) {
  const auto drifting = [](double minute) { return 1 + 0.001 * minute; };
  const auto steady = [](double) { return 0.5; };
  WindowOf window;
  for (uint32_t task = 0; task < 4; ++task) {
    window.Add(task, Signal::kStepTime, Steps(3, drifting, task), /*every=*/10);
    window.Add(task, Signal::kCompute,
               task == 2 ? Steps(3, drifting, task) : Steps(3, steady, task), /*every=*/10);
  }
  const Finding finding = DetectThroughputDropped(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "Drift");
  EXPECT_NEAR(finding.figures[0].value, 1.18, 0.02);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].task, 2u);
}

TEST(ThroughputDroppedTest, NoiseAChangeAndHalfAnHourAreNoDrift) {
  const auto judge = [](const std::vector<double>& steps) {
    return DetectThroughputDropped(WindowOf().Add(0, Signal::kStepTime, steps, /*every=*/10),
                                   Defaults());
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_FALSE(judge(Steps(
                           6, [](double) { return 1; }, seed))
                     .present)
        << seed;
  }
  const Finding change = judge(Steps(3, [](double minute) { return minute < 90 ? 1 : 1.3; }));
  EXPECT_EQ(change.reason, "StepTime");
  EXPECT_NE(judge(Steps(0.5, [](double minute) { return 1 + 0.004 * minute; })).reason, "Drift");
  EXPECT_FALSE(judge(Steps(6, [](double minute) { return 1.5 - 0.001 * minute; })).present);
}

TEST(ThroughputDroppedTest, LongerStepsOfMoreTokensAreNoDrop) {
  JobWindow window =
      At(900, {}, {{.kind = FaultKind::kSlowdown, .at_seconds = 700, .amount = 0.5}});
  ASSERT_TRUE(DetectThroughputDropped(window, Defaults()).present);
  for (TaskWindow& task : window.tasks) {
    double tokens = 0;
    const std::vector<Point>& steps = task.tracks[Signal::kStepTime][0].points;
    std::vector<Point>& points = task.tracks[Signal::kTokens][0].points;
    for (size_t i = 0; i < points.size(); ++i) {
      tokens += 1000 * (steps[i].time_ns > SyntheticFleet::Time(700) ? 1.5 : 1);
      points[i].value = tokens;
    }
  }
  EXPECT_FALSE(DetectThroughputDropped(window, Defaults()).present);
}

TEST(ThroughputDroppedTest, WhatHasPassedIsOver) {
  const Fault slow = {
      .kind = FaultKind::kSlowdown, .at_seconds = 500, .until_seconds = 700, .amount = 0.4};
  EXPECT_TRUE(DetectThroughputDropped(At(690, {}, {slow}), Defaults()).present);
  EXPECT_FALSE(DetectThroughputDropped(At(720, {}, {slow}), Defaults()).present);
}

TEST(ThroughputDroppedTest, CheckpointsEvaluationsAndNoiseAreNoDropWithManySeeds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FleetOptions options = {.seed = seed,
                                  .noise = 0.05,
                                  .checkpoint_every = 15,
                                  .checkpoint_seconds = 5,
                                  .eval_every = 50,
                                  .eval_seconds = 20,
                                  .events = seed % 2 == 0};
    EXPECT_FALSE(DetectThroughputDropped(At(900, options, {}), Defaults()).present) << seed;
  }
}

}  // namespace
}  // namespace tacho::server::conditions

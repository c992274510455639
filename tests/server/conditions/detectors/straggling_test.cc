
#include <limits>
#include <random>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using ::testing::HasSubstr;
using testing::SyntheticFleet;

constexpr Fault kSlow = {.kind = FaultKind::kSlowHost, .host = 5, .at_seconds = 300, .amount = 0.4};

Finding Detect(FleetOptions options, std::vector<Fault> faults, double seconds = 600) {
  options.max_points = 200;
  return DetectStraggling(SyntheticFleet(std::move(options), std::move(faults), 1300).At(seconds),
                          Defaults());
}

TEST(StragglingTest, NamesTheHostTheShareAndSinceWhen) {
  const SyntheticFleet fleet({.tasks = 16}, {kSlow});
  const Finding finding = DetectStraggling(fleet.At(360), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowCompute");
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0005");
  EXPECT_EQ(finding.culprits[0].task, 5u);
  EXPECT_NEAR(finding.culprits[0].score, 1.4, 0.05);
  ASSERT_TRUE(finding.step.has_value());
  EXPECT_NEAR(static_cast<double>(*finding.step), *fleet.StepAt(300), 10);
  EXPECT_GT(finding.since_ns, SyntheticFleet::Time(290));
  EXPECT_LT(finding.since_ns, SyntheticFleet::Time(320));
}

TEST(StragglingTest, OneSlowStepAndOneSlowWindowAreNot) {
  Fault blip = kSlow;
  blip.until_seconds = 304;
  EXPECT_FALSE(Detect({.tasks = 16}, {blip}, 330).present);
  const JobWindow window = SyntheticFleet({.tasks = 16}, {kSlow}).At(316);
  EXPECT_TRUE(DetectStraggling(window, With("windows: 1")).present) << "one window is slow";
  EXPECT_FALSE(DetectStraggling(window, Defaults()).present);
}

TEST(StragglingTest, AHostThatIsSlowNowAndThenIsNamed) {
  std::vector<Fault> bursts;  // 40 s of every 2 minutes.
  for (double at = 300; at < 1200; at += 120) {
    bursts.push_back({.kind = FaultKind::kSlowHost,
                      .host = 5,
                      .at_seconds = at,
                      .until_seconds = at + 40,
                      .amount = 0.6});
  }
  const SyntheticFleet fleet({.tasks = 16}, bursts, 1300);
  EXPECT_FALSE(DetectStraggling(fleet.At(400), Defaults()).present) << "once may be chance";
  const Finding finding = DetectStraggling(fleet.At(770), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NowAndThen") << finding.message;
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0005");
  EXPECT_NEAR(finding.figures[5].value, 0.6 / 3, 0.08);
}

TEST(StragglingTest, OneStepInThreeThatIsSlowIsNamed) {
  JobWindow window = SyntheticFleet({.tasks = 16}, {}).At(700);
  TaskWindow& slow = window.tasks[5];
  for (const auto& [signal, amount] :
       {std::pair(Signal::kCompute, 0.4), {Signal::kCommWait, -0.4}}) {
    for (Point& point : slow.tracks[signal][0].points) {
      if (point.step % 3 == 0) point.value += amount;
    }
  }
  const Finding finding = DetectStraggling(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NowAndThen");
  EXPECT_EQ(finding.culprits.at(0).host, "host0005");
}

TEST(StragglingTest, WorkThatIsUnevenOnAllTasksIsNobodysFault) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    JobWindow window = SyntheticFleet({.seed = seed, .tasks = 16}, {}).At(700);
    std::mt19937_64 random(seed);
    for (TaskWindow& task : window.tasks) {
      for (Point& point : task.tracks[Signal::kCompute][0].points) {
        if (random() % 8 == 0) point.value *= 1.6;
      }
      task.tracks.erase(Signal::kCommWait);
    }
    EXPECT_FALSE(DetectStraggling(window, Defaults()).present) << seed;
  }
}

TEST(StragglingTest, StepTimesThatAreEqualSayNothing) {
  FleetOptions options = {.tasks = 16};
  options.omit = {Signal::kCompute, Signal::kDataWait, Signal::kCommWait};
  EXPECT_FALSE(Detect(options, {kSlow}).judged);
}

TEST(StragglingTest, TheShortestWaitInTheBarrierTells) {
  FleetOptions options = {.tasks = 16};
  options.omit = {Signal::kCompute, Signal::kDataWait};
  const Finding finding = Detect(options, {kSlow});
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "LateAtBarrier");
  EXPECT_EQ(finding.culprits[0].host, "host0005");
  EXPECT_THAT(finding.message, HasSubstr("judged by its wait in the barrier"));
}

TEST(StragglingTest, LateOwnTimeThatTheBarrierDoesNotShowIsNone) {
  JobWindow window = SyntheticFleet({.tasks = 16}, {kSlow}).At(600);
  // It waits as long as all others: it computes beside what is waited for.
  window.tasks[5].tracks[Signal::kCommWait] = window.tasks[6].tracks[Signal::kCommWait];
  EXPECT_FALSE(DetectStraggling(window, Defaults()).present);
}

TEST(StragglingTest, SlowInputIsToldApart) {
  const Finding finding =
      Detect({.tasks = 16},
             {{.kind = FaultKind::kSlowInput, .host = 2, .at_seconds = 300, .amount = 0.3}});
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "SlowInput");
  EXPECT_EQ(finding.culprits[0].host, "host0002");
  FleetOptions options = {.tasks = 16};
  options.omit = {Signal::kCompute, Signal::kCommWait};
  EXPECT_EQ(Detect(options,
                   {{.kind = FaultKind::kSlowInput, .host = 2, .at_seconds = 300, .amount = 0.3}})
                .culprits.at(0)
                .host,
            "host0002");
}

TEST(StragglingTest, SeveralHostsTheWorstFirstAndUnevenWorkIsNoFault) {
  Fault worse = kSlow;
  worse.host = 9;
  worse.amount = 0.8;
  const Finding two = Detect({.tasks = 16}, {kSlow, worse});
  ASSERT_EQ(two.culprits.size(), 2u);
  EXPECT_EQ(two.culprits[0].host, "host0009");
  EXPECT_EQ(two.reason, "SlowCompute");
  std::vector<Fault> stage;
  for (uint32_t host = 12; host < 16; ++host) {
    stage.push_back({.kind = FaultKind::kSlowHost, .host = host, .amount = 0.4});
  }
  const Finding uneven = Detect({.tasks = 16}, stage);
  ASSERT_TRUE(uneven.present);
  EXPECT_EQ(uneven.reason, "UnevenWork");
  EXPECT_EQ(uneven.severity, Severity::kInfo);
}

TEST(StragglingTest, ChronicHostsAreNamed) {
  FleetOptions options = {.tasks = 16};
  options.straggles_elsewhere = {{"host0005", 4}};
  EXPECT_THAT(Detect(options, {kSlow}).message, HasSubstr("it straggled in 4 other jobs"));
}

TEST(StragglingTest, TooFewTasksOrStepsAreNotJudged) {
  EXPECT_FALSE(Detect({.tasks = 2}, {kSlow}).judged);
  EXPECT_FALSE(Detect({.tasks = 16}, {kSlow}, 80).judged);
  EXPECT_FALSE(DetectStraggling(JobWindow{}, Defaults()).judged);
}

TEST(StragglingTest, HealthyWithManySeeds) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    EXPECT_FALSE(
        Detect({.seed = seed, .tasks = 48, .noise = 0.03, .host_spread = 0.02}, {}).present)
        << seed;
  }
}

TEST(StragglingTest, NoNumbersAndMissingRowsDoNotMatter) {
  JobWindow window = SyntheticFleet({.tasks = 16}, {kSlow}).At(600);
  for (size_t i = 0; i < window.tasks.size(); ++i) {
    std::vector<Point>& points = window.tasks[i].tracks[Signal::kCompute][0].points;
    for (size_t k = i; k < points.size(); k += 5) {
      points[k].value = std::numeric_limits<double>::quiet_NaN();
    }
    if (i != 5) points.erase(points.end() - 7, points.end() - 5);
  }
  window.tasks[3].tracks.clear();
  const Finding finding = DetectStraggling(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.culprits[0].host, "host0005");
}

TEST(StragglingTest, TenThousandTasks) {
  FleetOptions options = {.tasks = 10'000, .chips_per_host = 0, .max_points = 80};
  options.omit = {Signal::kLoss,      Signal::kAccuracy,    Signal::kGradNorm,
                  Signal::kParamNorm, Signal::kUpdateNorm,  Signal::kReplicaScalar,
                  Signal::kTokens,    Signal::kLearningRate};
  Fault fault = kSlow;
  fault.host = 7654;
  fault.at_seconds = 60;
  const Finding finding =
      DetectStraggling(SyntheticFleet(options, {fault}, 140).At(140), Defaults());
  ASSERT_TRUE(finding.present);
  ASSERT_EQ(finding.culprits.size(), 1u) << finding.culprits[1].host;
  EXPECT_EQ(finding.culprits[0].host, "host7654");
}

}  // namespace
}  // namespace tacho::server::conditions


#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using testing::SyntheticFleet;

constexpr Fault kHang = {.kind = FaultKind::kHang, .host = 1, .at_seconds = 300};

void AddEvent(JobWindow* window, double seconds, const char* kind) {
  window->events.push_back({.time_ns = SyntheticFleet::Time(seconds),
                            .step = kNoPointStep,
                            .attempt = 0,
                            .task = 0,
                            .host = "host0000",
                            .kind = kind,
                            .fields = {}});
}

bool Stalled(const JobWindow& window, const Progress::Stalled& settings = Defaults()) {
  return DetectStalled(window, settings).present;
}

TEST(StalledTest, TellsSinceWhenAndWho) {
  const SyntheticFleet fleet({.tasks = 8}, {kHang});
  const Finding finding = DetectStalled(fleet.At(450), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.reason, "NoRows");
  EXPECT_EQ(finding.step, *fleet.StepAt(300) - 1);
  EXPECT_NEAR(static_cast<double>(finding.since_ns - SyntheticFleet::Time(300)) / 1e9, 0, 1.5);
  ASSERT_EQ(finding.culprits.size(), 1u) << "the others wait for it";
  EXPECT_EQ(finding.culprits[0].host, "host0001");
}

TEST(StalledTest, WaitsForTheFloorAndForAFewSteps) {
  const SyntheticFleet fleet({.tasks = 4}, {{.kind = FaultKind::kDataStall, .at_seconds = 300}});
  EXPECT_FALSE(Stalled(fleet.At(415)));
  EXPECT_TRUE(Stalled(fleet.At(425)));
  EXPECT_TRUE(Stalled(fleet.At(315), With("floor: 10s")));
  const SyntheticFleet slow({.tasks = 4, .compute = 60},
                            {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 1000}});
  EXPECT_FALSE(Stalled(slow.At(1200)));
  EXPECT_TRUE(Stalled(slow.At(1500)));
}

TEST(StalledTest, AJobThatWaitsForOneHostIsStalledSooner) {
  const FleetOptions options = {.tasks = 4, .events = false};
  const auto at = [&](uint32_t host, double seconds) {
    const Fault fault = {.kind = FaultKind::kHang, .host = host, .at_seconds = 300};
    return DetectStalled(SyntheticFleet(options, {fault}).At(300 + seconds), Defaults());
  };
  EXPECT_FALSE(at(2, 28).present);
  const Finding finding = at(2, 35);
  ASSERT_TRUE(finding.present);
  EXPECT_THAT(finding.message, ::testing::HasSubstr("(limit 30 s)"));
  EXPECT_EQ(finding.culprits.at(0).host, "host0002");
  EXPECT_FALSE(at(0, 100).present) << "it may work for all others";
  EXPECT_TRUE(at(0, 125).present);
}

TEST(StalledTest, ACheckpointThatNoEventAnnouncesIsNoStall) {
  for (const bool first_task_saves : {false, true}) {
    const SyntheticFleet fleet({.tasks = 4,
                                .checkpoint_seconds = 90,
                                .first_task_saves = first_task_saves,
                                .events = false,
                                .omit = {Signal::kCheckpointTime}},
                               {});
    const double begin = fleet.CheckpointAfter(0).value();
    for (double t = begin; t < begin + 100; t += 5) {
      EXPECT_FALSE(Stalled(fleet.At(t))) << first_task_saves << " " << t - begin;
    }
  }
}

TEST(StalledTest, ClearsWhenItGoesOn) {
  Fault fault = kHang;
  fault.until_seconds = 600;
  const SyntheticFleet fleet({.tasks = 4}, {fault});
  EXPECT_TRUE(Stalled(fleet.At(590)));
  EXPECT_FALSE(Stalled(fleet.At(605)));
}

TEST(StalledTest, APhaseThatAnEventBeganHasItsOwnLimit) {
  const SyntheticFleet fleet({.tasks = 4, .events = false}, {kHang});
  for (const char* kind : {"compile_started", "checkpoint_started", "eval_started",
                           "restore_started", "init_started", "preempted"}) {
    JobWindow window = fleet.At(900);
    AddEvent(&window, 300, kind);
    EXPECT_FALSE(Stalled(window)) << kind;
    window.now_ns = SyntheticFleet::Time(300 + 2 * 3600);
    for (HostWindow& host : window.hosts) host.agent->last_heard_ns = window.now_ns;
    EXPECT_TRUE(Stalled(window)) << kind;
  }
  JobWindow ended = fleet.At(900);
  AddEvent(&ended, 300, "checkpoint_started");
  AddEvent(&ended, 320, "checkpoint_saved");
  EXPECT_TRUE(Stalled(ended)) << "the checkpoint has ended, the stall has not";
}

TEST(StalledTest, ACheckpointThatTakesFarLongerThanEarlierOnesIsNoStallYet) {
  const SyntheticFleet fleet({.tasks = 4}, {kHang});
  JobWindow window = fleet.At(900);
  AddEvent(&window, 200, "checkpoint_started");
  AddEvent(&window, 210, "checkpoint_saved");
  AddEvent(&window, 300, "checkpoint_started");
  EXPECT_FALSE(Stalled(window));
  const Finding finding = DetectPhaseLong(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "Checkpointing");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.since_ns, SyntheticFleet::Time(300));
  EXPECT_TRUE(finding.culprits.empty());
  window.now_ns = SyntheticFleet::Time(300 + 1900);
  for (HostWindow& host : window.hosts) host.agent->last_heard_ns = window.now_ns;
  EXPECT_TRUE(Stalled(window)) << "after half an hour";
}

TEST(PhaseLongTest, AFirstPhaseAndOneOfTheUsualLengthAreNotLong) {
  const SyntheticFleet fleet({.tasks = 4, .events = false}, {kHang});
  JobWindow window = fleet.At(900);
  AddEvent(&window, 300, "checkpoint_started");
  EXPECT_FALSE(DetectPhaseLong(window, Defaults()).judged) << "nobody knows how long they take";
  JobWindow usual = fleet.At(360);
  AddEvent(&usual, 100, "checkpoint_started");
  AddEvent(&usual, 130, "checkpoint_saved");
  AddEvent(&usual, 300, "checkpoint_started");
  EXPECT_FALSE(DetectPhaseLong(usual, Defaults()).present);
  EXPECT_TRUE(DetectPhaseLong(usual, With("factor: 1\nfloor: 10s")).present);
}

TEST(PhaseLongTest, ACheckpointBesideTheTrainingIsNotLong) {
  const SyntheticFleet fleet({.tasks = 4, .events = false}, {});
  JobWindow window = fleet.At(900);
  AddEvent(&window, 100, "checkpoint_started");
  AddEvent(&window, 105, "checkpoint_saved");
  AddEvent(&window, 300, "checkpoint_started");
  EXPECT_FALSE(DetectPhaseLong(window, Defaults()).present);
}

TEST(PhaseLongTest, NamesTheTasksThatAreStillInside) {
  const SyntheticFleet fleet({.tasks = 4, .events = false}, {kHang});
  JobWindow window = fleet.At(600);
  const auto add = [&](uint32_t task, double seconds, const char* kind) {
    AddEvent(&window, seconds, kind);
    window.events.back().task = task;
  };
  for (uint32_t task = 0; task < 4; ++task) add(task, 100, "checkpoint_started");
  for (uint32_t task = 0; task < 4; ++task) add(task, 120, "checkpoint_saved");
  for (uint32_t task = 0; task < 4; ++task) add(task, 300, "checkpoint_started");
  for (const uint32_t task : {0, 1, 3}) add(task, 321, "checkpoint_saved");
  const Finding finding = DetectPhaseLong(window, Defaults());
  ASSERT_TRUE(finding.present);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0002");
}

TEST(StalledTest, AHostThatLostItsPowerIsTheFirstSuspect) {
  const SyntheticFleet fleet(
      {.tasks = 8}, {kHang, {.kind = FaultKind::kSilentAgent, .host = 5, .at_seconds = 301}});
  const Finding finding = DetectStalled(fleet.At(450), Defaults());
  ASSERT_TRUE(finding.present);
  ASSERT_FALSE(finding.culprits.empty());
  EXPECT_EQ(finding.culprits[0].host, "host0005") << finding.message;
}

TEST(StalledTest, AHostThatLostItsPowerIsTheFirstSuspectWhileItSeemsConnected) {
  const SyntheticFleet fleet({.tasks = 8},
                             {{.kind = FaultKind::kHostDies, .host = 3, .at_seconds = 300}});
  const Finding finding = DetectStalled(fleet.At(315), With("{floor: 10s, blocked_factor: 0}"));
  ASSERT_TRUE(finding.present);
  ASSERT_FALSE(finding.culprits.empty()) << finding.message;
  EXPECT_EQ(finding.culprits[0].host, "host0003");
  EXPECT_THAT(finding.message, ::testing::HasSubstr("whose agent fell silent with the job"));
}

TEST(StalledTest, OnceItsPausesAreKnownTheLimitFollowsThem) {
  const auto stalled = [](double checkpoint, double after) {
    const FleetOptions options = {.tasks = 4,
                                  .checkpoint_seconds = checkpoint,
                                  .eval_every = 100000,
                                  .events = false,
                                  .omit = {Signal::kCheckpointTime}};
    const double at = SyntheticFleet(options, {}).CheckpointAfter(2000).value() + checkpoint + 20;
    const SyntheticFleet fleet(options, {{.kind = FaultKind::kDataStall, .at_seconds = at}});
    return Stalled(fleet.At(at + after), With("settled_after: 15m"));
  };
  EXPECT_FALSE(stalled(2, 25));
  EXPECT_TRUE(stalled(2, 35)) << "30 s";
  EXPECT_FALSE(stalled(20, 55)) << "3 times the longest pause";
  EXPECT_TRUE(stalled(20, 70));
  EXPECT_FALSE(stalled(60, 115)) << "the floor";
  EXPECT_TRUE(stalled(60, 130));
}

TEST(StalledTest, TasksThatStoppedWithinOneStepAreNotTheFirst) {
  JobWindow window =
      SyntheticFleet({.tasks = 8}, {{.kind = FaultKind::kDataStall, .at_seconds = 300}}).At(450);
  for (const size_t task : {1, 4, 6}) --*window.tasks[task].last_step;
  const Finding finding = DetectStalled(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_THAT(finding.culprits, ::testing::IsEmpty()) << finding.message;
  EXPECT_THAT(finding.message, ::testing::HasSubstr("within one step"));
  window.tasks[4].last_step = *window.tasks[4].last_step - 5;
  EXPECT_EQ(DetectStalled(window, Defaults()).culprits.at(0).host, "host0004");
}

TEST(StalledTest, AfterAPhaseThereIsTimeForAStep) {
  const Fault stall = {.kind = FaultKind::kDataStall, .at_seconds = 300};
  JobWindow window = SyntheticFleet({.tasks = 4}, {stall}).At(900);
  AddEvent(&window, 300, "eval_started");
  AddEvent(&window, 800, "eval_ended");
  EXPECT_FALSE(Stalled(window));
}

TEST(StalledTest, AfterAPhaseAHostThatIsWaitedForHasTimeForAStep) {
  const Fault hang = {.kind = FaultKind::kHang, .host = 1, .at_seconds = 385};
  JobWindow window = SyntheticFleet({.tasks = 4, .events = false}, {hang}).At(431);
  AddEvent(&window, 386, "eval_started");
  AddEvent(&window, 398, "eval_ended");
  EXPECT_TRUE(Stalled(window));
  window.events.back().time_ns = SyntheticFleet::Time(405);
  EXPECT_FALSE(Stalled(window));
}

TEST(StalledTest, CompilingAnewMayTakeLongerThanTheFirstTime) {
  JobWindow window = SyntheticFleet({.tasks = 4}, {kHang}).At(900);
  AddEvent(&window, 300, "compile_started");
  EXPECT_FALSE(Stalled(window));
}

TEST(StalledTest, ACheckpointThatIsWrittenBesideTheTrainingExcusesNothing) {
  const SyntheticFleet fleet({.tasks = 4}, {kHang});
  JobWindow window = fleet.At(600);
  AddEvent(&window, 200, "checkpoint_started");
  EXPECT_TRUE(Stalled(window));
}

TEST(StalledTest, TheFirstStepMayTakeLong) {
  const SyntheticFleet fleet({.tasks = 4, .compile_seconds = 1e6, .events = false}, {});
  JobWindow window = fleet.At(1800);
  EXPECT_FALSE(DetectStalled(window, Defaults()).judged) << "nothing says that it will step";
  window.attributes["planned_steps"] = "1000";
  EXPECT_TRUE(DetectStalled(window, Defaults()).judged);
  EXPECT_FALSE(Stalled(window));
  const Finding finding = DetectStalled(window, With("startup: 20m"));
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NoFirstStep");
}

TEST(StalledTest, RowsThatComeWithoutAStepAreToldApart) {
  const SyntheticFleet fleet({.tasks = 4}, {kHang});
  JobWindow window = fleet.At(600);
  for (TaskWindow& task : window.tasks) task.last_time_ns = window.now_ns;
  EXPECT_EQ(DetectStalled(window, Defaults()).reason, "StepStuck");
}

TEST(StalledTest, WhoIsNotHeardSaysNothing) {
  const SyntheticFleet fleet({.tasks = 4}, {{.kind = FaultKind::kSilentAgent, .at_seconds = 300}});
  EXPECT_FALSE(DetectStalled(fleet.At(900), Defaults()).judged)
      << "the agents are silent, not the job";
  // One agent is silent, and the job hangs: old rows do not make that task a suspect.
  const SyntheticFleet mixed(
      {.tasks = 8}, {kHang, {.kind = FaultKind::kSilentAgent, .host = 5, .at_seconds = 200}});
  const Finding finding = DetectStalled(mixed.At(600), Defaults());
  ASSERT_TRUE(finding.present);
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0001");
}

TEST(StalledTest, AClockThatIsAheadHidesNoStall) {
  const SyntheticFleet fleet({.tasks = 4},
                             {kHang, {.kind = FaultKind::kClockSkew, .host = 2, .amount = 500}});
  EXPECT_TRUE(Stalled(fleet.At(450)));
}

TEST(StalledTest, WhatIsTrueOfHalfOfThemNamesNobody) {
  JobWindow window =
      SyntheticFleet({.tasks = 4}, {{.kind = FaultKind::kDataStall, .at_seconds = 300}}).At(450);
  for (ChipWindow& chip : window.chips) {
    const bool spins = chip.host < "host0002";
    for (Point& point : chip.tracks[Signal::kChipBusy][0].points) point.value = spins ? 1 : 0;
  }
  const Finding finding = DetectStalled(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_THAT(finding.culprits, ::testing::IsEmpty());
}

TEST(StalledTest, SilentOnRunsThatEndAndOnEmptyOnes) {
  const SyntheticFleet fleet({.tasks = 4, .steps = 100}, {});
  EXPECT_FALSE(Stalled(fleet.At(3000)));
  JobWindow window = fleet.At(3000);
  window.ended = false;
  EXPECT_FALSE(Stalled(window)) << "each task has reported its end";
  EXPECT_FALSE(DetectStalled(JobWindow{}, Defaults()).judged);
}

TEST(StalledTest, HealthyWithManySeeds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SyntheticFleet fleet({.seed = seed, .tasks = 6, .max_points = 100}, {}, 1300);
    for (double t = 5; t < 1300; t += 130) EXPECT_FALSE(Stalled(fleet.At(t))) << seed << " " << t;
  }
}

TEST(StalledTest, ValuesThatAreNoNumbersDoNotMatter) {
  const SyntheticFleet fleet({.tasks = 4}, {kHang});
  JobWindow window = fleet.At(450);
  for (TaskWindow& task : window.tasks) {
    for (Point& point : task.tracks[Signal::kStepTime][0].points) {
      point.value = std::numeric_limits<double>::quiet_NaN();
    }
  }
  for (ChipWindow& chip : window.chips) {
    for (Point& point : chip.tracks[Signal::kChipBusy][0].points) {
      point.value = std::numeric_limits<double>::infinity();
    }
  }
  EXPECT_TRUE(Stalled(window));
}

TEST(PhasesTest, PairsAreMatchedByTaskAndALostEndIsEndedByTheNextBeginning) {
  JobWindow window;
  AddEvent(&window, 1, "eval_ended");
  AddEvent(&window, 10, "checkpoint_started");
  AddEvent(&window, 20, "checkpoint_started");
  window.events.back().task = 7;
  AddEvent(&window, 30, "checkpoint_started");
  AddEvent(&window, 40, "checkpoint_saved");
  const std::vector<PhaseInterval> phases = FindPhases(window);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].end_ns, SyntheticFleet::Time(30));
  EXPECT_TRUE(phases[1].open());
  EXPECT_EQ(phases[2].end_ns, SyntheticFleet::Time(40));
  const PhaseCover cover(phases);
  EXPECT_TRUE(cover.Covers(SyntheticFleet::Time(5), SyntheticFleet::Time(15)));
  EXPECT_FALSE(cover.Covers(SyntheticFleet::Time(40), SyntheticFleet::Time(45)));
}

TEST(StepTimesTest, NetOfCheckpointsWhetherRecordedOrToldOrFromRowsAlone) {
  for (const bool recorded : {true, false}) {
    FleetOptions options = {.tasks = 4, .checkpoint_every = 20, .checkpoint_seconds = 30};
    if (!recorded) options.omit = {Signal::kStepTime, Signal::kCheckpointTime};
    const JobWindow window = SyntheticFleet(options, {}).At(900);
    const std::vector<StepTime> steps = NetStepTimes(window);
    ASSERT_GT(steps.size(), 200u);
    for (const StepTime& step : steps) EXPECT_LT(step.seconds, 1.2) << step.step;
    EXPECT_NEAR(MedianSeconds(steps), 0.94, 0.03);
  }
}

}  // namespace
}  // namespace tacho::server::conditions

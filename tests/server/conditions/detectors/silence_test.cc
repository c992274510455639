// TaskMissing, AgentSilent, TrainerSilent, ClockSkewed, DataLoss.
#include <algorithm>
#include <cmath>

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
using testing::SyntheticFleet;

JobWindow At(double seconds, std::vector<Fault> faults, FleetOptions options = {}) {
  options.max_points = 100;
  return SyntheticFleet(std::move(options), std::move(faults), 2000).At(seconds);
}

void AddEvent(JobWindow* window, double seconds, const char* kind) {
  window->events.push_back({.time_ns = SyntheticFleet::Time(seconds),
                            .step = kNoPointStep,
                            .attempt = 0,
                            .task = 0,
                            .host = "host0000",
                            .kind = kind,
                            .fields = {}});
}

TEST(TaskMissingTest, OneThatNeverCameIsMissingAfterAWhile) {
  const Fault never = {.kind = FaultKind::kNeverStarted, .host = 3};
  EXPECT_FALSE(DetectTaskMissing(At(100, {never}), Defaults()).present);
  const Finding finding = DetectTaskMissing(At(300, {never}), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.reason, "NeverSeen");
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].task, 3u);
}

TEST(TaskMissingTest, NumbersThatBeginAtOneAreAllThere) {
  JobWindow window = At(300, {});
  for (TaskWindow& task : window.tasks) ++*task.task;
  EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present);
}

TEST(TaskMissingTest, AGapWithoutTheAttribute) {
  JobWindow window = At(300, {{.kind = FaultKind::kNeverStarted, .host = 3}});
  window.attributes.erase("tasks");
  const Finding finding = DetectTaskMissing(window, Defaults());
  EXPECT_EQ(finding.reason, "Gap");
  EXPECT_EQ(finding.culprits.at(0).task, 3u);
  // A job may number its tasks 0, 8, 16, …: nothing is missing between them.
  for (size_t i = 0; i < window.tasks.size(); ++i)
    window.tasks[i].task = static_cast<uint32_t>(8 * i);
  EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present);
}

TEST(TaskMissingTest, AttributesThatAreNoNumbersAreAsNone) {
  for (const char* text : {"", "many", "-3", "0", "99999999999"}) {
    JobWindow window = At(300, {});
    window.attributes["tasks"] = text;
    EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present) << text;
  }
}

TEST(TaskMissingTest, GoneOnlyWhileOthersGoOnAndTheAgentIsHeard) {
  const Fault gone = {.kind = FaultKind::kMissingTask, .host = 3, .at_seconds = 300};
  EXPECT_FALSE(DetectTaskMissing(At(325, {gone}), Defaults()).present);
  const Finding finding = DetectTaskMissing(At(450, {gone}), Defaults());
  EXPECT_EQ(finding.reason, "Gone");
  EXPECT_EQ(finding.culprits.at(0).host, "host0003");
  EXPECT_FALSE(
      DetectTaskMissing(At(900, {{.kind = FaultKind::kSilentAgent, .host = 3, .at_seconds = 300}}),
                        Defaults())
          .present);
  EXPECT_FALSE(DetectTaskMissing(
                   At(900, {{.kind = FaultKind::kHang, .host = 3, .at_seconds = 300}}), Defaults())
                   .present)
      << "all have stopped";
  JobWindow ended = At(450, {gone});
  ended.tasks[3].ended = true;
  EXPECT_FALSE(DetectTaskMissing(ended, Defaults()).present);
}

TEST(TaskMissingTest, TheFirstToStopInAHangIsNotGone) {
  const SyntheticFleet fleet(
      {.tasks = 8}, {{.kind = FaultKind::kHang, .host = 5, .at_seconds = 300, .amount = 1}});
  for (double t = 300; t < 340; t += 0.5) {
    EXPECT_FALSE(DetectTaskMissing(fleet.At(t), With("gone_after: 12s")).present) << t;
  }
}

TEST(TaskMissingTest, OneThatRecordsAPhaseOfItsOwnIsNotGone) {
  JobWindow window = At(700, {{.kind = FaultKind::kMissingTask, .host = 3, .at_seconds = 300}},
                        {.synchronous = false, .events = false});
  ASSERT_TRUE(DetectTaskMissing(window, Defaults()).present);
  const auto add = [&](uint32_t task, double seconds, const char* kind) {
    AddEvent(&window, seconds, kind);
    window.events.back().task = task;
  };
  add(3, 100, "eval_started");
  add(3, 101, "eval_ended");
  add(4, 300, "checkpoint_started");
  EXPECT_TRUE(DetectTaskMissing(window, Defaults()).present) << "that of another task";
  add(3, 300, "checkpoint_started");
  EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present);
  add(3, 600, "checkpoint_saved");
  EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present) << "a step follows it";
  window.now_ns = SyntheticFleet::Time(730);
  EXPECT_TRUE(DetectTaskMissing(window, With("gone_after: 100s")).present);
}

TEST(TaskMissingTest, OneTaskMayRecordThePhasesOfAll) {
  JobWindow window = At(700, {{.kind = FaultKind::kMissingTask, .host = 3, .at_seconds = 300}},
                        {.synchronous = false, .events = false});
  AddEvent(&window, 299, "checkpoint_started");
  EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present);
  AddEvent(&window, 400, "checkpoint_saved");
  EXPECT_TRUE(DetectTaskMissing(window, Defaults()).present);
  AddEvent(&window, 650, "checkpoint_started");
  EXPECT_TRUE(DetectTaskMissing(window, Defaults()).present) << "it was silent before that began";
}

TEST(TaskMissingTest, APhaseThatItWentOnBesideExcusesNothing) {
  JobWindow window = At(700, {{.kind = FaultKind::kMissingTask, .host = 3, .at_seconds = 300}},
                        {.synchronous = false, .events = false});
  AddEvent(&window, 250, "checkpoint_started");
  window.events.back().task = 3;
  EXPECT_TRUE(DetectTaskMissing(window, Defaults()).present);
}

TEST(TaskMissingTest, OneThatOthersDoNotWaitForIsGoneSooner) {
  const std::vector<Fault> silent = {
      {.kind = FaultKind::kSilentTrainer, .host = 5, .at_seconds = 300}};
  const SyntheticFleet fleet({.tasks = 8}, silent);
  EXPECT_FALSE(DetectTaskMissing(fleet.At(325), Defaults()).present);
  const Finding finding = DetectTaskMissing(fleet.At(335), Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.culprits[0].task, 5u);
  // Where tasks do not keep in step, it may just take longer.
  const SyntheticFleet apart({.tasks = 8, .synchronous = false, .host_spread = 0.1}, silent);
  EXPECT_FALSE(DetectTaskMissing(apart.At(335), Defaults()).present);
  EXPECT_TRUE(DetectTaskMissing(apart.At(425), Defaults()).present);
}

TEST(AgentSilentTest, DisconnectedOrNotHeard) {
  const Fault silent = {.kind = FaultKind::kSilentAgent, .host = 3, .at_seconds = 300};
  EXPECT_FALSE(DetectAgentSilent(At(320, {silent}), Defaults()).present);
  const Finding finding = DetectAgentSilent(At(340, {silent}), Defaults());
  EXPECT_EQ(finding.reason, "Disconnected");
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0003");
  EXPECT_EQ(finding.since_ns, SyntheticFleet::Time(300));
  JobWindow connected = At(325, {silent});
  connected.hosts[3].agent->connected = true;
  EXPECT_FALSE(DetectAgentSilent(connected, Defaults()).present);
  connected.now_ns += 30'000'000'000;
  for (HostWindow& host : connected.hosts) {
    if (host.host != "host0003") host.agent->last_heard_ns = connected.now_ns;
  }
  EXPECT_EQ(DetectAgentSilent(connected, Defaults()).reason, "NotHeard");
}

TEST(AgentSilentTest, AfterAPreemptionOrTheEndOfMostTasksSilenceIsNoAlarm) {
  JobWindow window = At(400, {{.kind = FaultKind::kSilentAgent, .at_seconds = 300}});
  ASSERT_TRUE(DetectAgentSilent(window, Defaults()).present);
  JobWindow preempted = window;
  AddEvent(&preempted, 305, "preempted");
  EXPECT_FALSE(DetectAgentSilent(preempted, Defaults()).present);
  AddEvent(&preempted, 320, "init_started");
  EXPECT_TRUE(DetectAgentSilent(preempted, Defaults()).present) << "it runs again";
  JobWindow late = window;
  AddEvent(&late, 380, "preempted");
  EXPECT_TRUE(DetectAgentSilent(late, Defaults()).present) << "they were silent before";
  JobWindow ended = window;
  for (size_t i = 0; i < 8; ++i) ended.tasks[i].ended = true;
  EXPECT_FALSE(DetectAgentSilent(ended, Defaults()).present);
}

TEST(TrainerSilentTest, ThoseThatFellSilentTogetherAreNotTheFirst) {
  const JobWindow window = At(600, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300}});
  const Finding finding = DetectTrainerSilent(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_THAT(finding.message, ::testing::HasSubstr("together"));
  EXPECT_TRUE(finding.culprits.empty());
  const JobWindow lost = At(600, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300},
                                  {.kind = FaultKind::kSilentAgent, .host = 3, .at_seconds = 300}});
  const Finding power = DetectTrainerSilent(lost, Defaults());
  ASSERT_EQ(power.culprits.size(), 1u) << power.message;
  EXPECT_EQ(power.culprits[0].host, "host0003");
}

TEST(AgentSilentTest, AllOfThemAreNotAHostsFault) {
  EXPECT_EQ(
      DetectAgentSilent(At(400, {{.kind = FaultKind::kSilentAgent, .at_seconds = 300}}), Defaults())
          .reason,
      "AllAgents");
}

TEST(AgentSilentTest, HostsWhoseTasksHaveEndedMayGo) {
  JobWindow window = At(400, {{.kind = FaultKind::kSilentAgent, .host = 3, .at_seconds = 300}});
  window.tasks[3].ended = true;
  EXPECT_FALSE(DetectAgentSilent(window, Defaults()).present);
  for (HostWindow& host : window.hosts) host.agent.reset();
  EXPECT_FALSE(DetectAgentSilent(window, Defaults()).judged);
}

TEST(TrainerSilentTest, OneAndAllAreToldApart) {
  const Finding one = DetectTrainerSilent(
      At(550, {{.kind = FaultKind::kSilentTrainer, .host = 3, .at_seconds = 300}}), Defaults());
  EXPECT_EQ(one.reason, "SomeTrainers");
  ASSERT_EQ(one.culprits.size(), 1u);
  EXPECT_EQ(one.culprits[0].task, 3u);
  EXPECT_EQ(DetectTrainerSilent(At(550, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300}}),
                                Defaults())
                .reason,
            "AllTrainers");
}

TEST(TrainerSilentTest, NotWhileItsAgentIsSilentOrAPhaseIsOpen) {
  EXPECT_FALSE(
      DetectTrainerSilent(
          At(900, {{.kind = FaultKind::kSilentAgent, .host = 3, .at_seconds = 300}}), Defaults())
          .present);
  // The first task evaluates by now. That does not excuse a task that fell silent long before.
  EXPECT_TRUE(
      DetectTrainerSilent(
          At(550, {{.kind = FaultKind::kSilentTrainer, .host = 3, .at_seconds = 300}}), Defaults())
          .present);
  JobWindow window = At(900, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300}});
  ASSERT_TRUE(DetectTrainerSilent(window, Defaults()).present);
  AddEvent(&window, 300, "eval_started");
  EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present);
  EXPECT_TRUE(DetectTrainerSilent(window, With("phase_limit: 5m")).present);
}

TEST(TrainerSilentTest, AfterAPhaseThereIsTimeForAStep) {
  JobWindow window = At(900, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300}});
  AddEvent(&window, 300, "eval_started");
  AddEvent(&window, 800, "eval_ended");
  EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present);
  EXPECT_TRUE(DetectTrainerSilent(window, With("silent_after: 90s")).present);
}

TEST(TrainerSilentTest, PhasesThatFollowEachOtherAtOnceAreOneExcuse) {
  JobWindow window = At(1300, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 300}});
  AddEvent(&window, 300, "eval_started");
  AddEvent(&window, 800, "eval_ended");
  AddEvent(&window, 800.5, "checkpoint_started");
  EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present);
  AddEvent(&window, 1200, "checkpoint_saved");
  EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present);
}

TEST(TrainerSilentTest, WhatTheOthersGoOnToDoExcusesNobody) {
  JobWindow window = At(900, {{.kind = FaultKind::kSilentTrainer, .host = 3, .at_seconds = 300}});
  for (double begin = 310; begin < 890; begin += 100) {
    AddEvent(&window, begin, "eval_started");
    AddEvent(&window, begin + 20, "eval_ended");
  }
  const Finding finding = DetectTrainerSilent(window, Defaults());
  ASSERT_TRUE(finding.present);
  EXPECT_EQ(finding.culprits.at(0).task, 3u);
}

TEST(TrainerSilentTest, BeforeTheFirstStepEachPhaseCounts) {
  JobWindow window = At(1500, {{.kind = FaultKind::kSilentTrainer, .at_seconds = 10}},
                        {.compile_seconds = 1e6, .events = false});
  for (TaskWindow& task : window.tasks) ASSERT_FALSE(task.last_step.has_value());
  const Progress::TrainerSilent settings = With("phase_limit: 20m");
  EXPECT_TRUE(DetectTrainerSilent(window, settings).present);
  AddEvent(&window, 700, "compile_started");
  EXPECT_FALSE(DetectTrainerSilent(window, settings).present);
}

TEST(TrainerSilentTest, StalledIsToldFirst) {
  // This holds however long steps take, and in whatever phase the job hangs.
  for (const double compute : {1.0, 60.0}) {
    for (const char* kind : {"", "eval_started", "compile_started"}) {
      JobWindow window = At(1500, {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 1400}},
                            {.compute = compute});
      if (*kind != 0) AddEvent(&window, 1401, kind);
      for (int second = 1500; second < 8000; second += 5) {
        window.now_ns = SyntheticFleet::Time(second);
        for (HostWindow& host : window.hosts) host.agent->last_heard_ns = window.now_ns;
        if (DetectStalled(window, Defaults()).present) break;
        EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present) << compute << kind << second;
      }
      EXPECT_TRUE(DetectStalled(window, Defaults()).present) << compute << kind;
    }
  }
}

TEST(TrainerSilentTest, RowsThatAreFarApartAreNoSilence) {
  FleetOptions options;
  options.log_every = 100;
  for (double t = 400; t < 1500; t += 50) {
    EXPECT_FALSE(DetectTrainerSilent(At(t, {}, options), With("silent_after: 60s")).present) << t;
  }
}

TEST(ClockSkewedTest, HostsOrTheCollectorItself) {
  const Finding host = DetectClockSkewed(
      At(300, {{.kind = FaultKind::kClockSkew, .host = 3, .amount = -5}}), Defaults());
  EXPECT_EQ(host.reason, "HostClock");
  ASSERT_EQ(host.culprits.size(), 1u);
  EXPECT_EQ(host.culprits[0].host, "host0003");
  EXPECT_EQ(host.culprits[0].score, 5);
  const Finding all =
      DetectClockSkewed(At(300, {{.kind = FaultKind::kClockSkew, .amount = 5}}), Defaults());
  EXPECT_EQ(all.reason, "CollectorClock");
  EXPECT_THAT(all.culprits, ::testing::IsEmpty());
  EXPECT_FALSE(DetectClockSkewed(
                   At(300, {{.kind = FaultKind::kClockSkew, .host = 3, .amount = 0.9}}), Defaults())
                   .present);
  JobWindow unknown = At(300, {});
  for (HostWindow& one : unknown.hosts) one.agent->clock_offset_seconds = std::nan("");
  EXPECT_FALSE(DetectClockSkewed(unknown, Defaults()).judged);
}

TEST(ClockSkewedTest, OnlyWhatIsBeyondTheErrorOfTheMeasurementCounts) {
  JobWindow window = At(300, {{.kind = FaultKind::kClockSkew, .host = 3, .amount = -5}});
  for (HostWindow& one : window.hosts) one.agent->clock_uncertainty_seconds = 0.002;
  const auto of_host = [&](size_t i) -> ingest::AgentState& { return *window.hosts[i].agent; };
  // A slow way says little.
  of_host(5).clock_offset_seconds = 8;
  of_host(5).clock_uncertainty_seconds = 7.5;
  const Finding finding = DetectClockSkewed(window, Defaults());
  ASSERT_EQ(finding.culprits.size(), 1u);
  EXPECT_EQ(finding.culprits[0].host, "host0003");
  EXPECT_EQ(finding.figures[0].value, -5);
  EXPECT_EQ(finding.figures[1].value, 0.002);
  of_host(3).clock_uncertainty_seconds = 4.5;
  EXPECT_FALSE(DetectClockSkewed(window, Defaults()).present);
}

TEST(DataLossTest, TellsRowsAndHostsWhileItIsRecent) {
  const std::vector<Fault> faults = {
      {.kind = FaultKind::kDataLoss, .host = 3, .at_seconds = 300, .amount = 10},
      {.kind = FaultKind::kDataLoss, .host = 5, .at_seconds = 400, .amount = 1000}};
  const Finding finding = DetectDataLoss(At(500, faults), Defaults());
  ASSERT_EQ(finding.culprits.size(), 2u);
  EXPECT_EQ(finding.culprits[0].host, "host0005");
  EXPECT_EQ(finding.figures[0].value, 1010);
  EXPECT_EQ(DetectDataLoss(At(950, faults), Defaults()).culprits.size(), 1u);
  EXPECT_FALSE(DetectDataLoss(At(1100, faults), Defaults()).present);
}

TEST(JobRosterTest, HealthyWithManySeeds) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    FleetOptions options;
    options.seed = seed;
    for (const double t : {30.0, 90.0, 300.0, 1200.0}) {
      const JobWindow window = At(t, {}, options);
      EXPECT_FALSE(DetectTaskMissing(window, Defaults()).present);
      EXPECT_FALSE(DetectAgentSilent(window, Defaults()).present);
      EXPECT_FALSE(DetectTrainerSilent(window, Defaults()).present);
      EXPECT_FALSE(DetectClockSkewed(window, Defaults()).present);
      EXPECT_FALSE(DetectDataLoss(window, Defaults()).present);
    }
  }
}

}  // namespace
}  // namespace tacho::server::conditions

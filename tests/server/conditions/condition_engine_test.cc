#include "server/conditions/condition_engine.h"

#include <gmock/gmock.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>

#include "server/conditions/condition_families.h"
#include "server/conditions/measures/step_times.h"
#include "tests/server/conditions/condition_engine_fixture.h"

namespace tacho::server::conditions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Finds a task whose newest loss is not finite.
Finding DetectBadLoss(const JobWindow& window) {
  Finding finding = NotPresent();
  for (const TaskWindow& task : window.tasks) {
    const Track* loss = FindTrack(task.tracks, Signal::kLoss);
    if (loss == nullptr || std::isfinite(loss->points.back().value)) continue;
    finding.present = true;
    finding.reason = "NonFinite";
    finding.message = "it is no number";
    finding.severity = Severity::kCritical;
    finding.step = loss->points.back().step;
    finding.since_ns = loss->points.back().time_ns;
    finding.figures.push_back({"value", loss->points.back().value, "1"});
    Culprit culprit;
    culprit.task = task.task;
    culprit.host = task.host;
    culprit.metric = "loss";
    culprit.step = finding.step;
    finding.culprits.push_back(culprit);
  }
  return finding;
}

Detectors BadLoss() {
  Detector detector;
  detector.name = "Bad";
  detector.detect = DetectBadLoss;
  detector.clear_after = absl::Seconds(20);
  return {detector};
}

class ConditionEngineTest : public ConditionEngineFixture {
 protected:
  void Train(const std::string& job, int seconds, double loss) {
    for (int i = 0; i < seconds; ++i) {
      Append(job, 0, step_++, loss);
      Pass(absl::Seconds(1));
    }
  }
  std::string Metrics() {
    return prometheus::TextSerializer().Serialize(
        ConditionFamilies(engine_->board().All([](const std::string&) { return true; }), 1'000));
  }

  int64_t step_ = 0;
};

TEST_F(ConditionEngineTest, RaisesOnceAndClearsOnce) {
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  ASSERT_NE(Condition("a", "Bad"), nullptr);
  EXPECT_EQ(Condition("a", "Bad")->status, ConditionStatus::kFalse);
  const int64_t bad_step = step_;
  Train("a", 20, kNaN);
  const auto raised = Condition("a", "Bad");
  EXPECT_EQ(raised->status, ConditionStatus::kTrue);
  EXPECT_LE(*raised->finding.step, bad_step + 10);
  EXPECT_THAT(
      Metrics(),
      HasSubstr("tacho_job_condition{job=\"a\",condition=\"Bad\",severity=\"critical\"} 1"));
  EXPECT_THAT(Metrics(), HasSubstr("host=\"host-0\",task=\"0\",chip=\"\""));
  Train("a", 60, 1.0);
  EXPECT_EQ(Condition("a", "Bad")->status, ConditionStatus::kFalse);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
  EXPECT_THAT(Metrics(), Not(HasSubstr("tacho_job_condition_info")));
}

TEST_F(ConditionEngineTest, ARaisedConditionAsksForProfilesUntilTheyAreTaken) {
  config_.mutable_conditions()->mutable_profiler()->add_on("Bad");
  std::vector<ProfileOrder> orders;
  on_profile_ = [&orders](const ProfileOrder& order) {
    orders.push_back(order);
    return orders.size() == 2;  // The first time agents are busy.
  };
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  EXPECT_THAT(orders, IsEmpty());
  Train("a", 40, kNaN);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[1].job, "a");
  EXPECT_EQ(orders[1].cause, "Bad");
  EXPECT_THAT(orders[1].tasks, ElementsAre(0));
  EXPECT_EQ(orders[1].duration, absl::Seconds(2));
}

TEST_F(ConditionEngineTest, GoesOnJudgingWhenTheClockIsSetBack) {
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  now_ -= absl::Hours(1);
  Train("a", 20, 1.0);
  EXPECT_LE(Condition("a", "Bad")->judged_ns, absl::ToUnixNanos(now_));
}

TEST_F(ConditionEngineTest, ARestartNeitherRepeatsNorForgets) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  const auto before = Condition("a", "Bad");
  ASSERT_EQ(before->status, ConditionStatus::kTrue);
  RestartCollector(BadLoss());
  Train("a", 20, kNaN);
  const auto after = Condition("a", "Bad");
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->status, ConditionStatus::kTrue);
  EXPECT_EQ(after->since_ns, before->since_ns);
  EXPECT_EQ(after->changed_ns, before->changed_ns);
  EXPECT_EQ(after->finding.step, before->finding.step);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad"));
  Train("a", 90, 1.0);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
  RestartCollector(BadLoss());
  Train("a", 60, 1.0);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
}

TEST_F(ConditionEngineTest, WindowsAreThereAgainAfterARestart) {
  StartEngine(BadLoss());
  Train("a", 30, 1.0);
  size_t points = 0;
  Detector counter;
  counter.name = "Counter";
  counter.detect = [&](const JobWindow& window) {
    points = window.tasks.at(0).tracks.at(Signal::kLoss).at(0).points.size();
    EXPECT_EQ(window.tasks.at(0).last_step, step_ - 1);
    return NotPresent();
  };
  RestartCollector({counter});
  Pass(absl::Seconds(10));
  EXPECT_EQ(points, 30u);
}

TEST_F(ConditionEngineTest, ThePaceOfRowsIsThereAgainAfterARestart) {
  double interval = 0;
  Detector detector;
  detector.name = "Pace";
  detector.detect = [&](const JobWindow& window) {
    interval = ProgressInterval(window);
    return NotPresent();
  };
  const auto step = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      Append("a", 0, step_++, 1);
      now_ += absl::Seconds(3);
    }
  };
  StartEngine({detector});
  step(50);
  storage::Event event;
  event.source = {"a", 0, 0, "host-0"};
  event.time_ns = absl::ToUnixNanos(now_);
  event.kind = "checkpoint_started";
  Append(event);
  now_ += absl::Minutes(5);
  event.time_ns = absl::ToUnixNanos(now_);
  event.kind = "checkpoint_saved";
  Append(event);
  step(400);
  RestartCollector({detector});
  Pass(absl::Seconds(30));
  EXPECT_EQ(interval, 3);
}

TEST_F(ConditionEngineTest, TheProfileOfAJobIsThereAgainAfterARestart) {
  const auto save = [&](const char* kind) {
    storage::Event event;
    event.source = {"a", 0, 0, "host-0"};
    event.time_ns = absl::ToUnixNanos(now_);
    event.kind = kind;
    Append(event);
  };
  const auto profile = [&] {
    return engine_->board().Profiles([](const std::string&) { return true; })["a"];
  };
  StartEngine(BadLoss());
  Train("a", 30, 1);
  EXPECT_EQ(profile().profile, Profile::kBalanced);
  EXPECT_EQ(profile().reason, "it has recorded no checkpoint, evaluation or restore yet");
  save("checkpoint_started");
  Pass(absl::Seconds(40));
  save("checkpoint_saved");
  Train("a", 300, 1);
  EXPECT_EQ(profile().profile, Profile::kFast) << profile().reason;
  EXPECT_NE(profile().since_ns, 0);
  RestartCollector(BadLoss());
  Pass(absl::Seconds(10));
  EXPECT_EQ(profile().profile, Profile::kFast) << profile().reason;
  EXPECT_EQ(profile().since_ns, 0);

  ASSERT_TRUE(config::ParseYaml("conditions: {profile: quiet}", "f.yaml", &config_).ok());
  (*engine_->Prepare(config_))();
  Pass(absl::Seconds(10));
  EXPECT_EQ(profile().profile, Profile::kQuiet);
  EXPECT_FALSE(profile().automatic);
}

TEST_F(ConditionEngineTest, NothingIsRaisedUntilAgentsHadTimeToComeBack) {
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  RestartCollector(BadLoss());
  Train("a", 30, kNaN);
  EXPECT_THAT(EventsOf("a"), IsEmpty());
  Train("a", 30, kNaN);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad"));
  Train("b", 20, kNaN);
  EXPECT_THAT(EventsOf("b"), ElementsAre("raised Bad")) << "new jobs need not wait";
}

TEST_F(ConditionEngineTest, AnEndedJobClearsItsConditions) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  AppendEvent("a", "ended");
  Pass(absl::Seconds(60));
  EXPECT_EQ(Condition("a", "Bad")->status, ConditionStatus::kUnknown);
  EXPECT_EQ(Condition("a", "Bad")->finding.reason, "JobEnded");
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
}

TEST_F(ConditionEngineTest, TheLastRowsOfAJobAreJudged) {
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  Append("a", 0, step_, kNaN);
  AppendEvent("a", "ended");
  Pass(absl::Seconds(10));
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad"));
}

TEST_F(ConditionEngineTest, AJobThatIsGoneIsForgotten) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  uint64_t position = 0;
  engine_->board().All([](const std::string&) { return true; }, &position);
  now_ += absl::Hours(7);
  Pass(absl::Seconds(10));
  EXPECT_THAT(engine_->board().Of("a"), IsEmpty());
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
  JobConditions changes;
  ASSERT_TRUE(engine_->board().ChangesSince(&position, &changes).ok());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0]->status, ConditionStatus::kUnknown);
  EXPECT_EQ(changes[0]->finding.reason, "JobGone");
}

TEST_F(ConditionEngineTest, AJobThatComesBackBeforeItsEndIsStoredEndsOnce) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  FillDisk();
  now_ += absl::Hours(7);
  engine_->RunOnce();
  EXPECT_THAT(engine_->board().Of("a"), IsEmpty());
  SyncEvents();  // By now the event that cleared the condition has been refused.
  FreeDisk();
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad"));
  Append("a", 0, step_++, 1.0);
  Pass(absl::Seconds(60));
  EXPECT_EQ(Condition("a", "Bad")->status, ConditionStatus::kFalse);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
}

TEST_F(ConditionEngineTest, AJobThatWentWhileNobodyJudgedIsClosed) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  now_ += absl::Hours(30);
  RestartCollector(BadLoss());
  Pass(absl::Seconds(10));
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
  RestartCollector(BadLoss());
  Pass(absl::Seconds(10));
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
}

TEST_F(ConditionEngineTest, WhatWasMissedIsReadFromTheStore) {
  buffer_bytes_ = 1;  // Holds one change.
  StartEngine(BadLoss());
  Train("a", 20, 1.0);
  for (int i = 0; i < 5; ++i) Append("a", 0, step_++, kNaN);
  Pass(absl::Seconds(60));
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad"));
}

TEST_F(ConditionEngineTest, SwitchedOffItClearsAndSwitchedOnItJudgesAgain) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  config::v1::Conditions off = config_.conditions();
  off.set_enabled(false);
  engine_->Use(ConditionSettings::WithDetectors(off, BadLoss()));
  Pass(absl::Seconds(2));
  EXPECT_THAT(engine_->board().Of("a"), IsEmpty());
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad"));
  engine_->Use(ConditionSettings::WithDetectors(config_.conditions(), BadLoss()));
  Train("a", 60, kNaN);
  EXPECT_THAT(EventsOf("a"), ElementsAre("raised Bad", "cleared Bad", "raised Bad"));
}

TEST_F(ConditionEngineTest, ANewAttemptBeginsAnew) {
  StartEngine(BadLoss());
  Train("a", 20, kNaN);
  for (int i = 0; i < 60; ++i) {
    Append("a", 0, i, 1.0, /*attempt=*/1);
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(Condition("a", "Bad")->status, ConditionStatus::kFalse);
  EXPECT_EQ(Condition("a", "Bad")->attempt, 1u);
}

TEST_F(ConditionEngineTest, ThePageIsBounded) {
  StartEngine(BadLoss());
  for (const char* job : {"a", "b", "c"}) Train(job, 8, 1.0);
  const auto all = engine_->board().All([](const std::string&) { return true; });
  const std::string page = prometheus::TextSerializer().Serialize(ConditionFamilies(all, 2));
  EXPECT_THAT(page, HasSubstr("job=\"b\""));
  EXPECT_THAT(page, Not(HasSubstr("job=\"c\"")));
  EXPECT_THAT(page, HasSubstr("tacho_conditions_lines_left_out 1"));
}

}  // namespace
}  // namespace tacho::server::conditions

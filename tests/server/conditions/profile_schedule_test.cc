#include "server/conditions/profile_schedule.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/condition_settings.h"
#include "tacho/config/v1/conditions.pb.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfilerRules Rules(const std::string& yaml) {
  const config::v1::Conditions config = With(yaml);
  const auto settings = ConditionSettings::Create(config);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return (*settings)->Of("job").profiler;
}

class ProfileScheduleTest : public ::testing::Test {
 protected:
  ProfileScheduleTest() {
    window_.job = "job";
    for (uint32_t task = 0; task < 8; ++task) {
      TaskWindow& made = window_.tasks.emplace_back();
      made.task = task;
      made.host = absl::StrCat("h", task);
      made.last_step = 100;
    }
  }

  void Pass(absl::Duration time, int64_t steps = 0) {
    now_ += time;
    for (TaskWindow& task : window_.tasks) *task.last_step += steps;
  }
  // What is due, which is then under way; "" if nothing is.
  std::string Take(const ProfilerRules& rules) {
    const auto order = schedule_.Next(window_, rules, now_);
    if (!order.has_value()) return "";
    schedule_.Taken(now_);
    tasks_ = order->tasks;
    return order->cause;
  }
  void Raise(const std::string& condition, const ProfilerRules& rules, uint32_t culprit) {
    Finding finding = Present(Severity::kWarning, "Because", "It is so.");
    finding.BlameTask(window_.tasks[culprit], 1);
    schedule_.Raised(condition, finding, rules, now_);
  }

  JobWindow window_;
  ProfileSchedule schedule_;
  absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  std::vector<uint32_t> tasks_;
};

TEST_F(ProfileScheduleTest, IsOffByDefault) {
  const ProfilerRules off = Rules("");
  Raise("Stalled", off, 3);
  EXPECT_EQ(Take(off), "");
  Pass(absl::Hours(1000), 1'000'000);
  EXPECT_EQ(Take(off), "");
}

TEST_F(ProfileScheduleTest, EveryNStepsFromTheFirstLookOn) {
  const ProfilerRules rules = Rules("profiler: {every_steps: 1000, min_interval: 1s}");
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1), 999);
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1), 1);
  EXPECT_EQ(Take(rules), "every 1000 steps");
  EXPECT_THAT(tasks_, ElementsAre(0, 1, 2, 3));
  Pass(absl::Minutes(1), 999);
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1), 5);
  EXPECT_EQ(Take(rules), "every 1000 steps");
  // A new attempt counts anew, at whatever step it begins.
  window_.attempt = 1;
  Pass(absl::Minutes(1), 5000);
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1), 1000);
  EXPECT_EQ(Take(rules), "every 1000 steps");
}

TEST_F(ProfileScheduleTest, EverySoOftenFromTheFirstStepOn) {
  const ProfilerRules rules = Rules("profiler: {every: 30m, tasks: 0}");
  for (TaskWindow& task : window_.tasks) task.last_step.reset();
  EXPECT_EQ(Take(rules), "");
  now_ += absl::Hours(1);
  EXPECT_EQ(Take(rules), "") << "it compiles";
  for (TaskWindow& task : window_.tasks) task.last_step = 0;
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(29), 10);
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1), 10);
  EXPECT_EQ(Take(rules), "every 30m");
  EXPECT_THAT(tasks_, IsEmpty()) << "all";
}

TEST_F(ProfileScheduleTest, AConditionProfilesItsCulpritsAndSomeToCompareThemWith) {
  const ProfilerRules rules = Rules("profiler: {on: [Straggling], tasks: 3}");
  EXPECT_EQ(Take(rules), "");
  Raise("Stalled", rules, 1);
  EXPECT_EQ(Take(rules), "") << "of another kind";
  Raise("Straggling", rules, 6);
  EXPECT_EQ(Take(rules), "Straggling");
  EXPECT_THAT(tasks_, ElementsAre(0, 1, 6));
}

TEST_F(ProfileScheduleTest, AtMostOneInMinInterval) {
  const ProfilerRules rules =
      Rules("profiler: {on: [Straggling, Stalled], every_steps: 10, min_interval: 10m}");
  EXPECT_EQ(Take(rules), "");
  Raise("Straggling", rules, 6);
  EXPECT_EQ(Take(rules), "Straggling");
  Pass(absl::Minutes(9), 100);
  Raise("Stalled", rules, 6);
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Minutes(1));
  EXPECT_EQ(Take(rules), "every 10 steps") << "the schedule waits, the condition is passed over";
}

TEST_F(ProfileScheduleTest, WhatCannotBeTakenYetIsAskedAgainAndInTheEndDropped) {
  const ProfilerRules rules = Rules("profiler: {on: [Straggling]}");
  Raise("Straggling", rules, 6);
  EXPECT_TRUE(schedule_.Next(window_, rules, now_).has_value());
  Pass(absl::Seconds(5));
  EXPECT_TRUE(schedule_.Next(window_, rules, now_).has_value());
  Pass(ProfileSchedule::kPatience);
  EXPECT_FALSE(schedule_.Next(window_, rules, now_).has_value());
}

TEST_F(ProfileScheduleTest, NothingOfAJobThatHasEndedOrWasImported) {
  const ProfilerRules rules = Rules("profiler: {on: [Straggling], every: 1s, min_interval: 1s}");
  EXPECT_EQ(Take(rules), "");
  Pass(absl::Hours(1));
  window_.ended = true;
  EXPECT_EQ(Take(rules), "");
  window_.ended = false;
  for (TaskWindow& task : window_.tasks) task.imported = true;
  Raise("Straggling", rules, 6);
  EXPECT_EQ(Take(rules), "");
  window_.tasks[2].imported = false;
  EXPECT_EQ(Take(rules), "Straggling");
  EXPECT_THAT(tasks_, ElementsAre(2)) << "those that live";
}

TEST(ProfilerRulesTest, AJobMayHaveOthersAndInheritsWhatItLeavesOut) {
  const config::v1::Conditions config = With(
      "profiler: {on: [Straggling], tasks: 7}\n"
      "jobs: [{pattern: big-.*, profiler: {every_steps: 500}}]");
  const auto settings = ConditionSettings::Create(config);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ((*settings)->Of("small").profiler.every_steps, 0);
  const ProfilerRules& big = (*settings)->Of("big-1").profiler;
  EXPECT_EQ(big.every_steps, 500);
  EXPECT_EQ(big.tasks, 7u);
  EXPECT_THAT(big.on, ElementsAre("Straggling"));
}

TEST(ProfilerRulesTest, ANameThatIsNoConditionIsAMistake) {
  config::v1::Conditions config = With("profiler: {on: [Stragling]}");
  EXPECT_THAT(std::string(ConditionSettings::Create(config).status().message()),
              HasSubstr("conditions.profiler.on: there is no condition 'Stragling'; there are "
                        "Stalled, Straggling"));
  config = With("jobs: [{pattern: x, profiler: {on: [Nothing]}}]");
  EXPECT_THAT(std::string(ConditionSettings::Create(config).status().message()),
              HasSubstr("conditions.jobs[0].profiler.on"));
}

}  // namespace
}  // namespace tacho::server::conditions

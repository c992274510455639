// What the tests of conditions rely on: that faults are played as they are named.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fleet/job_player.h"

namespace tacho::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

TEST(FaultTest, LineIsRead) {
  const auto fault = ParseFault("slow job=bert host=host-3 factor=1.6 step=300");
  ASSERT_TRUE(fault.ok()) << fault.status();
  EXPECT_EQ(fault->kind, FaultKind::kSlow);
  EXPECT_EQ(fault->job, "bert");
  EXPECT_EQ(fault->host, "host-3");
  EXPECT_EQ(fault->factor, 1.6);
  EXPECT_EQ(fault->step, 300);
}

TEST(FaultTest, WrongLineIsRefused) {
  for (const char* line : {"", "slo job=a task=1", "slow job=a", "slow job=a task=1 host=h",
                           "nan job=a", "nan task=1", "slow job=a task=x", "end job=a status=well",
                           "leak job=a chip=0", "slow job=a task=1 factor=-1"}) {
    EXPECT_EQ(ParseFault(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

TEST(JobSpecTest, SettingsAreRead) {
  const auto job = ParseJob("bert:tasks=10,per_host=4,step=0.2,steps=50");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hosts(), 3u);
  EXPECT_EQ(job->HostOf(9), 2u);
  EXPECT_THAT(ParseJob("bert:task=1").status().message(), HasSubstr("task=1"));
  EXPECT_FALSE(ParseJob(":tasks=1").ok());
}

// The slowest task makes all steps long, and is the one that does not wait in the collective.
TEST(JobModelTest, SlowTaskWaitsLeast) {
  const JobModel model({.name = "a", .tasks = 4, .step_seconds = 1}, 1);
  std::vector<TaskTrouble> trouble(4);
  const double usual = model.Step(7, trouble, 1, false).seconds;
  trouble[2].compute_factor = 1.6;
  const JobStep step = model.Step(7, trouble, 1, false);
  EXPECT_GT(step.seconds, usual * 1.3);
  for (int task : {0, 1, 3}) {
    EXPECT_LT(step.tasks[2].comm_wait * 2, step.tasks[task].comm_wait);
    EXPECT_GT(step.tasks[2].compute, step.tasks[task].compute * 1.3);
  }
}

TEST(JobModelTest, StepIsTheSumOfItsParts) {
  const JobModel model({.name = "a", .tasks = 8, .step_seconds = 1}, 3);
  const JobStep step = model.Step(200, std::vector<TaskTrouble>(8), 1, false);
  EXPECT_GT(step.eval_seconds, 0);
  EXPECT_GT(step.checkpoint_seconds, 0);
  for (const TaskStep& task : step.tasks) {
    const double parts = task.compute + task.data_wait + task.comm_wait + step.eval_seconds +
                         step.checkpoint_seconds;
    EXPECT_NEAR(parts, step.seconds, 0.1);
  }
}

TEST(JobModelTest, SameSeedGivesTheSameStep) {
  const std::vector<TaskTrouble> trouble(4);
  const JobSpec spec{.name = "a", .tasks = 4};
  const double loss = JobModel(spec, 5).Step(9, trouble, 1, false).tasks[3].loss;
  EXPECT_EQ(JobModel(spec, 5).Step(9, trouble, 1, false).tasks[3].loss, loss);
  EXPECT_NE(JobModel(spec, 6).Step(9, trouble, 1, false).tasks[3].loss, loss);
}

class JobPlayerTest : public ::testing::Test {
 protected:
  // ctest runs this file's tests as processes side by side.
  JobPlayerTest()
      : directory_(::testing::TempDir() + "fleet_player." + std::to_string(::getpid())) {
    for (const char* host : {"/host-0", "/host-1"}) {
      std::filesystem::create_directories(directory_ + host);
    }
    player_ = std::make_unique<JobPlayer>(
        JobSpec{.name = "a", .tasks = 4, .tasks_per_host = 2, .step_seconds = 1, .steps = 100},
        PlayerOptions{.ring_root = directory_,
                      .begin_ns = kSecond,
                      .tell = [this](const Happening& h) { told_.push_back(h); }});
  }
  ~JobPlayerTest() override { std::filesystem::remove_all(directory_); }

  void PlayTo(int64_t step) {
    while (player_->step() < step && player_->next_ns() != JobPlayer::kNever) player_->PlayNext();
  }
  absl::Status Apply(const std::string& line) {
    const auto fault = ParseFault(line);
    return fault.ok() ? player_->Apply(*fault, told_.empty() ? kSecond : told_.back().time_ns)
                      : fault.status();
  }

  const std::string directory_;
  std::vector<Happening> told_;
  std::unique_ptr<JobPlayer> player_;
};

TEST_F(JobPlayerTest, HungHostStopsTheJobAtItsStep) {
  ASSERT_TRUE(Apply("hang job=a host=host-1 step=20").ok());
  PlayTo(50);
  EXPECT_EQ(player_->step(), 20);
  EXPECT_STREQ(player_->phase(), "hung");
  EXPECT_EQ(told_.back().what, "hung");
  EXPECT_THAT(told_.back().tasks, ElementsAre(2, 3));
  const int64_t now = told_.back().time_ns + 30 * kSecond;
  EXPECT_EQ(player_->ChipAt(0, now).activity, Activity::kWaiting);
  EXPECT_EQ(player_->ChipAt(2, now).activity, Activity::kIdle);
  ASSERT_TRUE(Apply("recover job=a").ok());
  PlayTo(30);
  EXPECT_EQ(player_->step(), 30);
}

TEST_F(JobPlayerTest, LeakingChipFillsItsMemory) {
  ASSERT_TRUE(Apply("leak job=a host=host-0 chip=1 bytes=1e9 step=5").ok());
  PlayTo(10);
  const int64_t began = told_.back().time_ns;
  const auto used = [&](uint32_t task, int64_t seconds) {
    const int64_t now = began + seconds * kSecond;
    return SampleChip(player_->ChipAt(task, now), 1, now)[3];
  };
  EXPECT_NEAR(used(1, 10) - used(1, 0), 1e10, 1);
  EXPECT_EQ(used(1, 10'000), kHbmBytes * 0.999);
  EXPECT_EQ(used(0, 10), used(0, 0));
}

TEST_F(JobPlayerTest, EndsWellAfterItsSteps) {
  PlayTo(1000);
  EXPECT_EQ(player_->step(), 100);
  EXPECT_EQ(told_.back().what, "ended");
  EXPECT_EQ(player_->next_ns(), JobPlayer::kNever);
}

TEST_F(JobPlayerTest, RestartGoesOnAtAnEarlierStepInANewAttempt) {
  PlayTo(40);
  ASSERT_TRUE(Apply("restart job=a to=30 down=60").ok());
  while (player_->attempt() == 0) player_->PlayNext();
  while (std::string(player_->phase()) != "stepping") player_->PlayNext();
  EXPECT_EQ(player_->attempt(), 1u);
  EXPECT_EQ(player_->step(), 30);
}

TEST_F(JobPlayerTest, FaultOfNobodyIsRefused) {
  EXPECT_THAT(Apply("nan job=a task=4").message(), HasSubstr("4 tasks"));
  EXPECT_THAT(Apply("slow job=a host=host-2").message(), HasSubstr("host-0 to host-1"));
}

}  // namespace
}  // namespace tacho::fleet

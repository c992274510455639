#include "agent/sources/chips/chip_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "client/recorder.h"
#include "tests/agent/recording_sink.h"
#include "tests/agent/sources/tpu/tpu_test_machine.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ChipJobsTest : public ::testing::Test {
 protected:
  void Look(const HeldChips& held, absl::Duration later = absl::Seconds(10)) {
    now_ += later;
    sample_ = {};
    sink_.events.clear();
    jobs_.Look(now_, now_, held, &events_, &sample_);
    events_.Flush(&sink_);
  }
  std::string Field(size_t event, const char* name) const {
    const auto& fields = sink_.events.at(event).fields();
    return fields.contains(name) ? fields.at(name) : "";
  }
  std::vector<Labels> Series() const {
    std::vector<Labels> all;
    for (const Sample::Entry& entry : sample_.entries()) all.push_back(entry.labels);
    return all;
  }

  testing::TpuTestMachine machine_;
  ChipJobs jobs_{machine_.proc(), machine_.root()};
  ChipEvents events_{"hosts", "host-a"};
  testing::RecordingSink sink_;
  Sample sample_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(ChipJobsTest, EnvironmentNamesTheJobAsItDoesForTheRecorder) {
  machine_.AddProcess(41, {}, {{"JOBSET_NAME", "bert"}, {"JOB_COMPLETION_INDEX", "3"}});
  Look({{41, {0, 2}}});
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "chips_held");
  EXPECT_EQ(Field(0, "chips"), "0,2");
  EXPECT_EQ(Field(0, "job"), "bert");
  EXPECT_EQ(Field(0, "task"), "3");
  EXPECT_THAT(Series(), ElementsAre(Labels{{"chip", "0"},
                                           {"training_job", "bert"},
                                           {"training_task", "3"},
                                           {"training_attempt", "0"}},
                                    Labels{{"chip", "2"},
                                           {"training_job", "bert"},
                                           {"training_task", "3"},
                                           {"training_attempt", "0"}}));
  Look({{41, {0, 2}}});
  EXPECT_THAT(sink_.events, IsEmpty()) << "once";
}

TEST_F(ChipJobsTest, RingOfTheProcessWinsOverItsEnvironmentThoughItComesLater) {
  const int pid = ::getpid();
  machine_.AddProcess(pid, {}, {{"TACHO_JOB", "of-environment"}});
  Look({{pid, {1}}});
  EXPECT_EQ(Field(0, "job"), "of-environment");
  auto recorder = client::Recorder::Open(
      {.directory = machine_.root(), .job = "of-ring", .task = 5, .attempt = 2});
  Look({{pid, {1}}});
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(Field(0, "job"), "of-ring");
  EXPECT_EQ(Field(0, "task"), "5");
  EXPECT_EQ(Field(0, "attempt"), "2");
}

TEST_F(ChipJobsTest, ProcessThatNamesNoJobIsToldWithoutOne) {
  machine_.AddProcess(41, {}, {});
  Look({{41, {0}}, {42, {1}}});
  ASSERT_THAT(sink_.events, SizeIs(2));
  EXPECT_EQ(Field(0, "job"), "");
  EXPECT_EQ(Field(1, "pid"), "42") << "whose environment cannot be read";
  EXPECT_THAT(Series(), IsEmpty());
}

TEST_F(ChipJobsTest, ReleasedAndTakenByAnother) {
  machine_.AddProcess(41, {}, {{"TACHO_JOB", "bert"}});
  machine_.AddProcess(42, {}, {{"TACHO_JOB", "gpt"}});
  Look({{41, {0}}});
  Look({{42, {0}}});
  ASSERT_THAT(sink_.events, SizeIs(2));
  EXPECT_EQ(sink_.events[0].kind(), "chips_held");
  EXPECT_EQ(Field(0, "job"), "gpt");
  EXPECT_EQ(sink_.events[1].kind(), "chips_released");
  EXPECT_EQ(Field(1, "job"), "bert");
}

TEST_F(ChipJobsTest, JobIsNotLookedForForEver) {
  machine_.AddProcess(41, {}, {});
  Look({{41, {0}}});
  machine_.RemoveProcess(41);
  machine_.AddProcess(41, {}, {{"TACHO_JOB", "late"}});
  Look({{41, {0}}}, ChipJobs::kSettling + absl::Seconds(1));
  EXPECT_THAT(sink_.events, IsEmpty());
}

}  // namespace
}  // namespace tacho::agent

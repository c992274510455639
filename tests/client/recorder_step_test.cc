// Steps and their phases, by clocks that the test moves.
#include <sys/wait.h>

#include <stdexcept>

#include "tests/client/step_fixture.h"

namespace tacho::client {
namespace {

using ::testing::SizeIs;

class RecorderStepTest : public StepFixture {};

TEST_F(RecorderStepTest, AStepIsARowWithItsPhases) {
  {
    auto step = recorder_.Step(41);
    Pass(1);
    step.Phase("data");
    Pass(20);
    step.Phase("compute");
    Pass(300);
    step.Phase("comm");
    Pass(40);
    step.Phase("compute");
    Pass(5);
    step.EndPhase();
    Pass(2);
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  const Row& row = read.rows[0];
  EXPECT_TRUE(row.has_step);
  EXPECT_EQ(row.step, 41);
  EXPECT_EQ(row.time, 1'700'000'000'000'000'000);
  EXPECT_DOUBLE_EQ(Value(row, "data_wait_seconds"), 0.020);
  EXPECT_DOUBLE_EQ(Value(row, "compute_seconds"), 0.305);
  EXPECT_DOUBLE_EQ(Value(row, "comm_wait_seconds"), 0.040);
  EXPECT_DOUBLE_EQ(Value(row, "step_duration_seconds"), 0.368);
  EXPECT_DOUBLE_EQ(Value(row, "step_time_seconds"), 0.368);
  EXPECT_EQ(recorder_.refused(), 0u);
}

TEST_F(RecorderStepTest, StepTimeCountsWhatLiesBetweenSteps) {
  recorder_.Step(0).End();
  Pass(30);
  {
    auto step = recorder_.Step(1);
    Pass(100);
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(2));
  EXPECT_DOUBLE_EQ(Value(read.rows[1], "step_time_seconds"), 0.130);
  EXPECT_DOUBLE_EQ(Value(read.rows[1], "step_duration_seconds"), 0.100);
}

TEST_F(RecorderStepTest, APhaseThatAStepDoesNotEnterHasNoValueInItsRow) {
  {
    auto step = recorder_.Step(0);
    step.Phase("checkpoint");
    Pass(7);
  }
  recorder_.Step(1).End();
  const Everything read = Read();
  EXPECT_TRUE(Has(read.rows.at(0), "checkpoint_seconds"));
  EXPECT_FALSE(Has(read.rows.at(1), "checkpoint_seconds"));
}

TEST_F(RecorderStepTest, APhaseOfOnesOwnAndByHandle) {
  const Metric warmup = recorder_.StepPhase("warmup");
  {
    auto step = recorder_.Step(0);
    step.Phase(warmup);
    Pass(3);
    step.Phase("warmup");
    Pass(4);
  }
  const Everything read = Read();
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "warmup_seconds"), 0.007);
}

TEST_F(RecorderStepTest, WhatIsSetInAStepIsInItsRow) {
  const Metric loss = recorder_.Gauge("loss", "", "");
  {
    auto step = recorder_.Step(3);
    recorder_.Set(loss, 0.25);
  }
  EXPECT_EQ(Value(Read().rows.at(0), "loss"), 0.25);
}

TEST_F(RecorderStepTest, AnEndedStepDoesNothingMore) {
  {
    auto step = recorder_.Step(0);
    step.End();
    step.Phase("data");
    step.End();
    step.Abandon();
  }
  EXPECT_THAT(Read().rows, SizeIs(1));
}

TEST_F(RecorderStepTest, AStepThatAnExceptionLeavesWritesNoRowAndItsTimeGoesToTheNext) {
  const Metric loss = recorder_.Gauge("loss", "", "");
  const Metric tokens = recorder_.Counter("tokens", "", "");
  recorder_.Step(0).End();
  try {
    auto step = recorder_.Step(1);
    step.Phase("data");
    recorder_.Set(loss, 666);
    recorder_.Add(tokens, 10);
    Pass(50);
    throw std::runtime_error("lost a host");
  } catch (const std::runtime_error&) {
    Pass(1);
  }
  {
    auto step = recorder_.Step(1);
    Pass(9);
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(2));
  EXPECT_FALSE(Has(read.rows[1], "loss"));
  EXPECT_FALSE(Has(read.rows[1], "data_wait_seconds"));
  EXPECT_EQ(Value(read.rows[1], "tokens"), 10);
  EXPECT_DOUBLE_EQ(Value(read.rows[1], "step_time_seconds"), 0.060);
  EXPECT_DOUBLE_EQ(Value(read.rows[1], "step_duration_seconds"), 0.009);
}

// A destructor may record a whole step while an exception is on its way.
TEST_F(RecorderStepTest, AStepThatIsWholeWithinUnwindingIsRecorded) {
  struct AtExit {
    Recorder* recorder;
    ~AtExit() { recorder->Step(8).End(); }
  };
  try {
    const AtExit at_exit{&recorder_};
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
  }
  EXPECT_THAT(Read().rows, SizeIs(1));
}

TEST_F(RecorderStepTest, AnAbandonedStepWritesNoRow) {
  auto step = recorder_.Step(0);
  step.Phase("data");
  step.Abandon();
  recorder_.Step(1).End();
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_EQ(read.rows[0].step, 1);
}

TEST_F(RecorderStepTest, AStepWithinAStepIsRefusedAndTheOuterOneGoesOn) {
  testing::internal::CaptureStderr();
  {
    auto outer = recorder_.Step(0);
    Pass(10);
    {
      auto inner = recorder_.Step(1);
      inner.Phase("data");
      Pass(5);
    }
    Pass(10);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("a step within a step"));
  EXPECT_EQ(recorder_.refused(), 1u);
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_EQ(read.rows[0].step, 0);
  EXPECT_DOUBLE_EQ(Value(read.rows[0], "step_duration_seconds"), 0.025);
  EXPECT_FALSE(Has(read.rows[0], "data_wait_seconds"));
}

TEST_F(RecorderStepTest, TooManyPhasesAreRefusedAndTheStepIsRecorded) {
  {
    auto step = recorder_.Step(0);
    for (int i = 0; i < 33; ++i) {
      step.Phase("p" + std::to_string(i));
      Pass(1);
    }
  }
  EXPECT_EQ(recorder_.refused(), 1u);
  const Everything read = Read();
  EXPECT_TRUE(Has(read.rows.at(0), "p31_seconds"));
  EXPECT_FALSE(Has(read.rows.at(0), "p32_seconds"));
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "p31_seconds"), 0.001);
}

TEST_F(RecorderStepTest, ARecorderMayMoveWithinAStep) {
  {
    auto step = recorder_.Step(0);
    Recorder moved = std::move(recorder_);
    recorder_ = std::move(moved);
  }
  EXPECT_THAT(Read().rows, SizeIs(1));
}

TEST_F(RecorderStepTest, AForkedChildThatLeavesTheStepWritesNothing) {
  auto step = recorder_.Step(0);
  const pid_t child = fork();
  if (child == 0) {
    step.Phase("data");
    step.End();
    recorder_.Step(7).End();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  step.End();
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_EQ(read.rows[0].step, 0);
}

}  // namespace
}  // namespace tacho::client

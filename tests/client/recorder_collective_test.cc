// Collectives of steps, by clocks that the test moves.
#include <stdexcept>

#include "tests/client/step_fixture.h"

namespace tacho::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class RecorderCollectiveTest : public StepFixture {};

TEST_F(RecorderCollectiveTest, TheRowHasItsTimeAndBytes) {
  {
    auto step = recorder_.Step(41);
    step.Phase("compute");
    Pass(100);
    {
      auto collective = step.Collective("DP-allreduce", 4096);
      Pass(30);
    }
    Pass(5);
    {
      auto collective = step.Collective("pp send", 512, 3);
      Pass(7);
    }
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  const Row& row = read.rows[0];
  EXPECT_DOUBLE_EQ(Value(row, "collective_dp_allreduce_seconds"), 0.030);
  EXPECT_EQ(Value(row, "collective_dp_allreduce_bytes"), 4096);
  EXPECT_DOUBLE_EQ(Value(row, "collective_pp_send_peer_3_seconds"), 0.007);
  EXPECT_EQ(Value(row, "collective_pp_send_peer_3_bytes"), 512);
  EXPECT_DOUBLE_EQ(Value(row, "compute_seconds"), 0.105);
  EXPECT_DOUBLE_EQ(Value(row, "comm_wait_seconds"), 0.037);
  EXPECT_DOUBLE_EQ(Value(row, "step_duration_seconds"), 0.142);
  EXPECT_EQ(recorder_.refused(), 0u);
}

TEST_F(RecorderCollectiveTest, SeveralOfOneNameAddUpAndAnotherRowStartsAnew) {
  {
    auto step = recorder_.Step(0);
    for (int i = 0; i < 3; ++i) {
      auto collective = step.Collective("allgather", 10);
      Pass(2);
    }
  }
  recorder_.Step(1).End();
  const Everything read = Read();
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "collective_allgather_seconds"), 0.006);
  EXPECT_EQ(Value(read.rows.at(0), "collective_allgather_bytes"), 30);
  EXPECT_FALSE(Has(read.rows.at(1), "collective_allgather_seconds"));
}

TEST_F(RecorderCollectiveTest, WithoutBytesThereIsNoMetricOfBytes) {
  {
    auto step = recorder_.Step(0);
    auto barrier = step.Collective("barrier");
    Pass(2);
    barrier.End();
    Pass(1);
  }
  const Everything read = Read();
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "collective_barrier_seconds"), 0.002);
  for (const auto& metric : reader_->metrics()) EXPECT_NE(metric.name, "collective_barrier_bytes");
}

TEST_F(RecorderCollectiveTest, ByHandleItIsTheSame) {
  const CollectiveMetric handle = recorder_.StepCollective("ep-alltoall", 9);
  {
    auto step = recorder_.Step(0);
    {
      auto collective = step.Collective(handle, 5);
      Pass(3);
    }
    auto collective = step.Collective("ep-alltoall", 5, 9);
    Pass(4);
  }
  const Everything read = Read();
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "collective_ep_alltoall_peer_9_seconds"), 0.007);
  EXPECT_EQ(Value(read.rows.at(0), "collective_ep_alltoall_peer_9_bytes"), 10);
}

TEST_F(RecorderCollectiveTest, TheEndOfAStepEndsItAndALateEndDoesNothing) {
  auto first = recorder_.Step(0);
  auto collective = first.Collective("a");
  Pass(3);
  first.End();
  {
    auto step = recorder_.Step(1);
    auto other = step.Collective("b");
    Pass(2);
    collective.End();
    Pass(2);
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(2));
  EXPECT_DOUBLE_EQ(Value(read.rows[0], "collective_a_seconds"), 0.003);
  EXPECT_DOUBLE_EQ(Value(read.rows[1], "collective_b_seconds"), 0.004);
  EXPECT_FALSE(Has(read.rows[1], "collective_a_seconds"));
}

TEST_F(RecorderCollectiveTest, APhaseEnteredWithinItGoesOnAfterIt) {
  {
    auto step = recorder_.Step(0);
    step.Phase("compute");
    Pass(1);
    {
      auto collective = step.Collective("a");
      Pass(2);
      step.Phase("data");
      Pass(4);
    }
    Pass(8);
  }
  const Everything read = Read();
  const Row& row = read.rows.at(0);
  EXPECT_DOUBLE_EQ(Value(row, "collective_a_seconds"), 0.006);
  EXPECT_DOUBLE_EQ(Value(row, "comm_wait_seconds"), 0.002);
  EXPECT_DOUBLE_EQ(Value(row, "data_wait_seconds"), 0.012);
  EXPECT_DOUBLE_EQ(Value(row, "compute_seconds"), 0.001);
}

TEST_F(RecorderCollectiveTest, OneWithinAnotherIsRefusedAndTheOuterOneGoesOn) {
  testing::internal::CaptureStderr();
  {
    auto step = recorder_.Step(0);
    auto outer = step.Collective("outer");
    Pass(1);
    {
      auto inner = step.Collective("inner");
      Pass(2);
    }
    Pass(4);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a collective within"));
  EXPECT_EQ(recorder_.refused(), 1u);
  const Everything read = Read();
  EXPECT_DOUBLE_EQ(Value(read.rows.at(0), "collective_outer_seconds"), 0.007);
  EXPECT_FALSE(Has(read.rows.at(0), "collective_inner_seconds"));
}

TEST_F(RecorderCollectiveTest, AnAbandonedStepLeavesNothingBehind) {
  try {
    auto step = recorder_.Step(0);
    auto collective = step.Collective("a", 8);
    Pass(3);
    throw std::runtime_error("a link is gone");
  } catch (const std::runtime_error&) {
  }
  recorder_.Step(1).End();
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_FALSE(Has(read.rows[0], "collective_a_seconds"));
  EXPECT_FALSE(Has(read.rows[0], "collective_a_bytes"));
}

TEST_F(RecorderCollectiveTest, TooManyAndNamelessOnesAreRefusedAndTheStepIsRecorded) {
  {
    auto step = recorder_.Step(0);
    for (uint32_t peer = 0; peer < 17; ++peer) {
      auto collective = step.Collective("send", 1, peer);
      Pass(1);
    }
    EXPECT_EQ(recorder_.refused(), 1u);
    auto nameless = step.Collective("---");
    EXPECT_EQ(recorder_.refused(), 2u);
  }
  const Everything read = Read();
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_DOUBLE_EQ(Value(read.rows[0], "collective_send_peer_15_seconds"), 0.001);
  EXPECT_FALSE(Has(read.rows[0], "collective_send_peer_16_seconds"));
}

TEST_F(RecorderCollectiveTest, ARecorderThatRecordsNothingDoesNothing) {
  Recorder none;
  auto step = none.Step(0);
  auto collective = step.Collective("a", 1, 2);
  collective.End();
  auto by_handle = step.Collective(none.StepCollective("b"));
  EXPECT_EQ(none.refused(), 0u);
}

}  // namespace
}  // namespace tacho::client

// What becomes of a host's processes and its disk, one fault at a time.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "proto/base/log.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/transport/sim_network.h"
#include "tests/simulate/world/agent_host.h"
#include "tests/simulate/world/collector_host.h"
#include "tests/simulate/world/disk_faults.h"
#include "tests/simulate/world/knobs.h"
#include "tests/simulate/world/model.h"

namespace tacho::simulate {
namespace {

constexpr char kCollector[] = "collector:7411";
constexpr int64_t kSecond = 1'000'000'000;

class HostsTest : public ::testing::Test {
 protected:
  HostsTest()
      : knobs_(DrawKnobs(/*days=*/false)),
        collector_(kCollector, knobs_, 1, &network_, &model_, log::Log()),
        agent_({.collectors = {kCollector}, .knobs = knobs_}, &network_, &model_, log::Log()) {}
  ~HostsTest() override {
    agent_.Stop(End::kOrderly);
    collector_.Stop(End::kOrderly);
  }

  const Knobs knobs_;
  SimNetwork network_{SimNetworkOptions()};
  Model model_;
  CollectorHost collector_;
  AgentHost agent_;
};

TEST_F(HostsTest, ADiskThatDiesWhileNothingRunsLivesAtTheNextStart) {
  collector_.disk()->power()->Kill();
  agent_.disk()->power()->CutNow();
  EXPECT_TRUE(collector_.Start().ok());
  EXPECT_TRUE(agent_.Start().ok());
}

TEST_F(HostsTest, ADiskThatDiesInAProcessLivesAtTheNextStart) {
  ASSERT_TRUE(collector_.Start().ok());
  ASSERT_TRUE(agent_.Start().ok());
  collector_.disk()->power()->CutNow();
  agent_.disk()->power()->Kill();
  collector_.Stop(End::kDead);
  agent_.Stop(End::kDead);
  EXPECT_TRUE(collector_.Start().ok());
  EXPECT_TRUE(agent_.Start().ok());
}

TEST_F(HostsTest, ADeadDiskIsAnError) {
  ASSERT_TRUE(collector_.Start().ok());
  EXPECT_TRUE(collector_.had_no_error());
  collector_.disk()->power()->CutNow();
  EXPECT_FALSE(collector_.had_no_error());
  collector_.Stop(End::kDead);
}

// The sender syncs the spool, though no collector takes anything from it.
TEST_F(HostsTest, ASpoolThatLostSyncedEntriesIsWrong) {
  ASSERT_TRUE(agent_.Start().ok());
  SleepNs(20 * kSecond);
  agent_.Stop(End::kOrderly);
  const auto earlier = agent_.disk()->power()->files();
  ASSERT_TRUE(agent_.Start().ok());
  EXPECT_EQ(agent_.wrong(), "");
  SleepNs(60 * kSecond);
  agent_.Observe();
  agent_.Stop(End::kDead);
  agent_.disk()->power()->SetFiles(earlier);
  ASSERT_TRUE(agent_.Start().ok());
  EXPECT_EQ(agent_.wrong().rfind("agent-0's spool lost synced entries: it ends at ", 0), 0u)
      << agent_.wrong();
}

TEST_F(HostsTest, ANewSpoolLosesNothing) {
  ASSERT_TRUE(agent_.Start().ok());
  SleepNs(60 * kSecond);
  agent_.Observe();
  agent_.Stop(End::kDead);
  agent_.disk()->power()->SetFiles({});
  ASSERT_TRUE(agent_.Start().ok());
  EXPECT_EQ(agent_.wrong(), "");
}

TEST_F(HostsTest, AnAgentSaysThatItsSpoolIsAnOldCopy) {
  ASSERT_TRUE(collector_.Start().ok());
  ASSERT_TRUE(agent_.Start().ok());
  SleepNs(20 * kSecond);
  agent_.CopySpool();
  SleepNs(60 * kSecond);
  agent_.RestoreSpool();
  ASSERT_TRUE(agent_.Start().ok());
  SleepNs(60 * kSecond);
  EXPECT_TRUE(agent_.says_old_copy());
  EXPECT_EQ(agent_.wrong(), "");
  agent_.LoseSpool();
  ASSERT_TRUE(agent_.Start().ok());
  SleepNs(60 * kSecond);
  EXPECT_FALSE(agent_.says_old_copy());
  EXPECT_EQ(collector_.Check(false, 0, /*only_dropped=*/true), "");
}

// Queries of parts that are of another time than the rows would find nothing wrong in any store.
TEST_F(HostsTest, QueriesOfPartsMeetRows) {
  ASSERT_TRUE(collector_.Start().ok());
  ASSERT_TRUE(agent_.Start().ok());
  for (int i = 0; i < 20; ++i) {
    SleepNs(5 * kSecond);
    EXPECT_EQ(collector_.QueryParts(), "");
  }
  EXPECT_GT(collector_.range_samples(), 0u);
}

TEST_F(HostsTest, ARowThatItsSourcePassedOverIsRequired) {
  const Model::Source source = {0, 1};
  for (const uint64_t number : {1, 2, 3}) model_.Make(source, number, 1000 + number, true);
  model_.Appended(source, 2, 7);
  EXPECT_EQ(model_.Everything(), (Model::Chosen{{source, {true, true, false}}}));
  model_.SpoolReplaced(0);
  EXPECT_EQ(model_.Everything(), (Model::Chosen{{source, {false, false, false}}}));
}

TEST_F(HostsTest, TheEndOfAFaultOfADiskLeavesTheOthers) {
  SimDisk* const disk = agent_.disk();
  constexpr FaultKind kKinds[] = {FaultKind::kDiskFull,    FaultKind::kDiskSlow,
                                  FaultKind::kAppendFails, FaultKind::kSyncFails,
                                  FaultKind::kNoRoom,      FaultKind::kNoRoomForLarge,
                                  FaultKind::kSlowLook};
  for (const FaultKind ended : kKinds) {
    for (const FaultKind kind : kKinds) {
      BeginOnDisk({.kind = kind, .amount = 3, .seconds = 2}, disk);
    }
    EndOnDisk(ended, disk);
    const SimDisk::Faults left = disk->faults();
    EXPECT_EQ(left.capacity == UINT64_MAX, ended == FaultKind::kDiskFull);
    EXPECT_EQ(left.sync_ns, ended == FaultKind::kDiskSlow ? 200'000 : 3'000'000);
    EXPECT_EQ(left.failing_appends, ended == FaultKind::kAppendFails ? 0 : 3);
    EXPECT_EQ(left.late, ended != FaultKind::kAppendFails);
    EXPECT_EQ(left.look_ns, ended == FaultKind::kSlowLook ? 0 : 3'000'000);
    EXPECT_EQ(left.full_append, ended == FaultKind::kNoRoom ? 0 : 3);
    EXPECT_EQ(left.full_size, ended == FaultKind::kNoRoomForLarge ? 0u : 3u);
    EXPECT_EQ(left.failing_syncs, ended == FaultKind::kSyncFails ? 0 : 3);
  }
  disk->Set({});
}

}  // namespace
}  // namespace tacho::simulate

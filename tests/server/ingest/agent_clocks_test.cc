#include "server/ingest/agent_clocks.h"

#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tacho::server::ingest {
namespace {

class AgentClocksTest : public testing::Test {
 protected:
  void Pass(absl::Duration time) {
    now_ += time;
    uptime_ += time;
  }
  void ExpectVotes(size_t agree, size_t disagree) {
    EXPECT_EQ(clocks_.Votes().agree, agree);
    EXPECT_EQ(clocks_.Votes().disagree, disagree);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Time uptime_ = absl::UnixEpoch() + absl::Hours(3);
  AgentClocks clocks_{[this] { return now_; }, [this] { return uptime_; }};
};

TEST_F(AgentClocksTest, CountsTheClocksOfAgentsAndRemembersThemForAnHour) {
  ExpectVotes(0, 0);
  const auto right = clocks_.Join("right", now_ + absl::Seconds(59));
  auto ahead = clocks_.Join("ahead", now_ + absl::Hours(1));
  auto further = clocks_.Join("further", now_ + absl::Hours(3));
  auto behind = clocks_.Join("behind", now_ - absl::Hours(1));
  ExpectVotes(1, 3);
  EXPECT_EQ(clocks_.Votes().ahead, absl::Hours(1));
  behind.reset();
  ahead.reset();
  Pass(absl::Minutes(59));
  ExpectVotes(1, 3);
  Pass(absl::Minutes(1));
  ExpectVotes(1, 1);
  EXPECT_EQ(clocks_.Votes().ahead, absl::Hours(3));
}

TEST_F(AgentClocksTest, AnAgentThatComesAgainCountsOnceWithItsNewTime) {
  auto older = clocks_.Join("agent", now_ + absl::Hours(1));
  ExpectVotes(0, 1);
  const auto newer = clocks_.Join("agent", now_);
  older.reset();
  ExpectVotes(1, 0);
  Pass(absl::Hours(2));
  ExpectVotes(1, 0);
}

TEST_F(AgentClocksTest, AJumpOfOurClockShowsAtOnceAndTimeThatPassesDoesNot) {
  const auto agent = clocks_.Join("agent", now_);
  Pass(absl::Hours(1000));
  ExpectVotes(1, 0);
  now_ -= absl::Hours(24);
  ExpectVotes(0, 1);
  EXPECT_EQ(clocks_.Votes().ahead, absl::Hours(24));
}

TEST_F(AgentClocksTest, RowsOfThisMomentShowThatAnAgentAgrees) {
  const auto agent = clocks_.Join("agent", now_);
  Pass(absl::Minutes(10));
  now_ += absl::Hours(2);  // Such as after a pause of the machine.
  ExpectVotes(0, 1);
  agent->SawRow(absl::ToUnixNanos(now_ - absl::Hours(1)));
  agent->SawRow(absl::ToUnixNanos(now_ + absl::Hours(1)));
  ExpectVotes(0, 1);
  agent->SawRow(absl::ToUnixNanos(now_ - absl::Seconds(5)));
  Pass(absl::Seconds(1));
  ExpectVotes(1, 0);
}

TEST_F(AgentClocksTest, RowsThatWaitedInASpoolShowNothing) {
  const auto agent = clocks_.Join("agent", now_ + absl::Hours(24));
  agent->SawRow(absl::ToUnixNanos(now_));
  Pass(absl::Minutes(4));
  agent->SawRow(absl::ToUnixNanos(now_));
  Pass(absl::Seconds(1));
  ExpectVotes(0, 1);
}

TEST_F(AgentClocksTest, TimesThatNoClockShowsAreTaken) {
  const auto first = clocks_.Join("first", absl::FromUnixNanos(INT64_MIN));
  const auto last = clocks_.Join("last", absl::FromUnixNanos(INT64_MAX));
  first->SawRow(INT64_MIN);
  last->SawRow(INT64_MAX);
  ExpectVotes(0, 2);
}

}  // namespace
}  // namespace tacho::server::ingest

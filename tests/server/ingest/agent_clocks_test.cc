#include "server/ingest/agent_clocks.h"

#include <cstdint>
#include <memory>
#include <optional>

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

// The agent's clock is `ahead`. An exchange takes `there` and `back`; the agent holds the mark for
// `held`.
struct Exchange {
  absl::Duration ahead;
  absl::Duration there = absl::Milliseconds(1);
  absl::Duration held = absl::Milliseconds(300);
  absl::Duration back = absl::Milliseconds(1);
};

class ClockReportTest : public AgentClocksTest {
 protected:
  std::optional<AgentClocks::Clock::Seen> Report(const Exchange& exchange) {
    AgentClocks::Clock::Report report;
    report.mark = clocks_.Mark();
    Pass(exchange.there + exchange.held);
    report.held = exchange.held;
    report.said = now_ + exchange.ahead;
    Pass(exchange.back);
    return agent_->Reported(report);
  }
  // Some exchanges of a clock that nobody sets.
  void Report(int times, absl::Duration ahead) {
    for (int i = 0; i < times; ++i) {
      Pass(absl::Seconds(1));
      ASSERT_TRUE(Report({.ahead = ahead}).has_value());
    }
  }
  static void ExpectWithin(const AgentClocks::Clock::Seen& seen, absl::Duration truth) {
    EXPECT_LE(absl::AbsDuration(seen.offset.ahead - truth), seen.offset.uncertainty)
        << "ahead " << seen.offset.ahead << " ± " << seen.offset.uncertainty << ", truth " << truth;
  }

  std::unique_ptr<AgentClocks::Clock> agent_ = clocks_.Join("agent", now_);
};

TEST_F(ClockReportTest, AClockThatIsSetWhileConnectedShowsWithTheNextReportBothWays) {
  Report(10, absl::ZeroDuration());
  ExpectVotes(1, 0);
  absl::Duration ahead;
  for (const absl::Duration step : {absl::Milliseconds(10), absl::Hours(2), -absl::Hours(2),
                                    -absl::Hours(3), absl::Seconds(90), -absl::Seconds(90)}) {
    ahead += step;
    const auto seen = Report({.ahead = ahead});
    ASSERT_TRUE(seen.has_value());
    ASSERT_TRUE(seen->step.has_value()) << step;
    EXPECT_NEAR(absl::ToDoubleSeconds(*seen->step), absl::ToDoubleSeconds(step), 0.004);
    ExpectWithin(*seen, ahead);
    Pass(absl::Seconds(1));
    ExpectVotes(absl::AbsDuration(ahead) > absl::Minutes(1) ? 0 : 1,
                absl::AbsDuration(ahead) > absl::Minutes(1) ? 1 : 0);
    Report(10, ahead);
  }
}

TEST_F(ClockReportTest, TheTruthIsWithinTheBoundWhateverTheDelays) {
  uint32_t random = 1;
  const auto delay = [&random](double most_seconds) {
    random = random * 1664525 + 1013904223;
    return absl::Seconds(most_seconds * (random >> 8) / (1 << 24));
  };
  for (const double most_there : {0.0, 0.001, 2.0}) {
    for (const double most_back : {0.0, 0.001, 2.0}) {
      for (int i = 0; i < 100; ++i) {
        Pass(delay(3));
        const auto seen = Report({.ahead = absl::Milliseconds(-250),
                                  .there = delay(most_there),
                                  .held = delay(1),
                                  .back = delay(most_back)});
        ASSERT_TRUE(seen.has_value());
        EXPECT_FALSE(seen->step.has_value());
        ExpectWithin(*seen, absl::Milliseconds(-250));
      }
    }
  }
}

TEST_F(ClockReportTest, TheBestOfTheRecentReportsCountsUntilItIsAMinuteOld) {
  ASSERT_TRUE(Report({.ahead = absl::Seconds(1)}).has_value());
  const auto slow = Report({.ahead = absl::Seconds(1), .back = absl::Seconds(4)});
  EXPECT_LT(slow->offset.uncertainty, absl::Milliseconds(10));
  Pass(absl::Minutes(1));
  const auto later = Report({.ahead = absl::Seconds(1), .back = absl::Seconds(4)});
  EXPECT_GT(later->offset.uncertainty, absl::Seconds(2));
  ExpectWithin(*later, absl::Seconds(1));
}

TEST_F(ClockReportTest, AfterAStepAPoorReportCountsMoreThanGoodOnesBeforeIt) {
  Report(10, absl::ZeroDuration());
  const auto seen = Report({.ahead = absl::Hours(2), .back = absl::Seconds(4)});
  ASSERT_TRUE(seen->step.has_value());
  ExpectWithin(*seen, absl::Hours(2));
}

TEST_F(ClockReportTest, AStepOfOurOwnClockIsNoStepOfTheAgents) {
  Report(10, absl::ZeroDuration());
  now_ -= absl::Hours(2);
  const auto seen = Report({.ahead = absl::Hours(2)});
  EXPECT_FALSE(seen->step.has_value());
  ExpectWithin(*seen, absl::Hours(2));
}

TEST_F(ClockReportTest, RowsSayNothingMoreOnceThereAreReports) {
  Report(10, absl::Hours(2));
  Pass(absl::Minutes(10));
  agent_->SawRow(absl::ToUnixNanos(now_));
  Pass(absl::Seconds(1));
  ExpectVotes(0, 1);
}

TEST_F(ClockReportTest, AnImpossibleReportChangesNothing) {
  Report(10, absl::ZeroDuration());
  const AgentClocks::Clock::Report good = {.mark = clocks_.Mark(), .said = now_ + absl::Hours(5)};
  auto early = good;
  early.mark = 1;
  auto future = good;
  future.mark = UINT64_MAX;
  auto long_held = good;
  long_held.held = absl::Seconds(1);
  auto negative = good;
  negative.held = -absl::Seconds(1);
  for (const auto& report : {early, future, long_held, negative}) {
    EXPECT_FALSE(agent_->Reported(report).has_value());
  }
  ExpectVotes(1, 0);
  auto extreme = good;
  extreme.said = absl::FromUnixNanos(INT64_MIN);
  EXPECT_TRUE(agent_->Reported(extreme).has_value());
}

TEST_F(ClockReportTest, AReportThatMayBeWrongByHalfAMinuteHasNoVote) {
  ASSERT_TRUE(Report({.ahead = absl::ZeroDuration(), .back = absl::Minutes(30)}).has_value());
  Pass(absl::Seconds(1));
  ExpectVotes(1, 0);
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

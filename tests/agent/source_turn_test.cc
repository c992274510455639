#include "agent/source_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "agent/sources/rows/cadence.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;

// Samples every 10 s, takes as long and fails as it is told.
class FakeSource : public Source {
 public:
  struct Script {
    absl::Status status;
    std::function<void()> in_poll = [] {};
    std::vector<absl::Time> polls = {};
    absl::Duration next = absl::Seconds(10);  // Not positive: there is more to read.
    uint64_t lost_rows = 0;
  };
  explicit FakeSource(Script* script) : script_(script) {}

  absl::string_view name() const override { return "fake"; }
  absl::Time Poll(absl::Time now, RowSink* /*sink*/) override {
    script_->polls.push_back(now);
    script_->in_poll();
    if (script_->next <= absl::ZeroDuration()) return now;
    return NextAligned(now, script_->next);
  }
  absl::Status status() const override { return script_->status; }
  uint64_t lost_rows() const override { return script_->lost_rows; }

 private:
  Script* const script_;
};

class SourceTurnTest : public ::testing::Test {
 protected:
  // Both clocks go on.
  void Pass(absl::Duration time) {
    now_ += time;
    monotonic_ += time;
  }

  testing::RecordingSink sink_;
  SourceLedger ledger_;
  FakeSource::Script script_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'003);
  absl::Time monotonic_ = absl::FromUnixSeconds(50);
  SourceTurn turn_{std::make_unique<FakeSource>(&script_),
                   &sink_,
                   &ledger_,
                   {.now = [this] { return now_; }, .monotonic = [this] { return monotonic_; }}};
};

TEST_F(SourceTurnTest, WaitsInTheMonotonicClockForWhatTheSourceWants) {
  EXPECT_EQ(turn_.Poll(), monotonic_ + absl::Seconds(7));
}

TEST_F(SourceTurnTest, PollThatTakesLongDoesNotPutTheNextOneOff) {
  script_.in_poll = [this] { Pass(absl::Seconds(3)); };
  const absl::Time began = monotonic_;
  EXPECT_EQ(turn_.Poll(), began + absl::Seconds(7));
}

TEST_F(SourceTurnTest, FailingSourceIsRetriedAfterPausesThatDoubleUpToAMinute) {
  script_.status = absl::UnavailableError("no driver");
  script_.next = absl::Milliseconds(100);
  std::vector<int64_t> pauses;
  for (int i = 0; i < 9; ++i) {
    pauses.push_back(absl::ToInt64Seconds(turn_.Poll() - monotonic_));
    Pass(absl::Seconds(pauses.back()));
  }
  EXPECT_THAT(pauses, ElementsAre(1, 2, 4, 8, 16, 32, 60, 60, 60));
  script_.status = absl::OkStatus();
  EXPECT_LE(turn_.Poll() - monotonic_, absl::Milliseconds(100)) << "at once as it wants again";
  script_.status = absl::UnavailableError("no driver");
  EXPECT_EQ(turn_.Poll() - monotonic_, absl::Seconds(1)) << "and from the start";
}

TEST_F(SourceTurnTest, FailingSourceIsNotPolledMoreOftenThanItWants) {
  script_.status = absl::UnavailableError("no driver");
  EXPECT_EQ(turn_.Poll() - monotonic_, absl::Seconds(7));
}

TEST_F(SourceTurnTest, ClockThatIsSetWhileWaitingMovesNoPoll) {
  const absl::Time due = turn_.Poll();
  now_ -= absl::Hours(1);
  monotonic_ = due;
  now_ += absl::Seconds(7);
  EXPECT_EQ(turn_.Poll() - monotonic_, absl::Seconds(10)) << "aligned to the clock as it is now";
}

TEST_F(SourceTurnTest, LedgerKnowsPollsFailuresTimeAndSince) {
  script_.in_poll = [this] { Pass(absl::Seconds(2)); };
  turn_.Poll();
  script_.status = absl::UnavailableError("no driver");
  const absl::Time failed = now_;
  turn_.Poll();
  turn_.Poll();
  const SourceHealth health = ledger_.Read(monotonic_).at(0);
  EXPECT_EQ(health.name, "fake");
  EXPECT_EQ(health.polls, 3);
  EXPECT_EQ(health.failures, 2);
  EXPECT_EQ(health.busy, absl::Seconds(6));
  EXPECT_EQ(health.status, absl::UnavailableError("no driver"));
  EXPECT_EQ(health.since, failed);
  EXPECT_EQ(health.in_poll, absl::ZeroDuration());
}

TEST_F(SourceTurnTest, LedgerKnowsWhenASourceIsTriedAgainAndWhatItLost) {
  script_.status = absl::UnavailableError("no driver");
  script_.lost_rows = 42;
  turn_.Poll();
  Pass(absl::Seconds(3));
  EXPECT_EQ(ledger_.Read(monotonic_).at(0).next_poll_in, absl::Seconds(4));
  EXPECT_EQ(ledger_.Read(monotonic_).at(0).lost_rows, 42);
  Pass(absl::Seconds(5));
  EXPECT_EQ(ledger_.Read(monotonic_).at(0).next_poll_in, absl::ZeroDuration());
}

TEST_F(SourceTurnTest, LedgerKnowsAPollThatHasNotReturned) {
  SourceHealth during;
  script_.in_poll = [&] {
    Pass(absl::Seconds(73));
    during = ledger_.Read(monotonic_).at(0);
  };
  turn_.Poll();
  EXPECT_EQ(during.in_poll, absl::Seconds(73));
}

TEST_F(SourceTurnTest, LastPollsEndWhenNothingIsLeftOrAtTheDeadline) {
  turn_.PollLast(monotonic_ + absl::Seconds(1));
  EXPECT_EQ(script_.polls.size(), 1);
  script_.next = absl::ZeroDuration();
  script_.in_poll = [this] { Pass(absl::Milliseconds(100)); };
  turn_.PollLast(monotonic_ + absl::Seconds(1));
  EXPECT_EQ(script_.polls.size(), 11);
}

}  // namespace
}  // namespace tacho::agent

#include "agent/sources/self/self_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SelfSourceTest : public ::testing::Test {
 protected:
  SelfSourceTest()
      : source_({.job = "hosts",
                 .host = "host-a",
                 .agent_id = "agent-a",
                 .version = "1.2.3",
                 .log = testing::LogTo(&log_),
                 .ledger = ledger_,
                 .delivery =
                     [] {
                       return DeliveryFigures{.waiting_messages = 3,
                                              .waiting_bytes = 4096,
                                              .rows = 100,
                                              .lost_rows = 5,
                                              .missing_again = 8,
                                              .missing_gone = 9};
                     },
                 .spool = [this] { return spool_; },
                 .refused = [this] { return refused_; },
                 .monotonic = [this] { return monotonic_; }}) {}

  // A poll of the source "tpu" that took a second and ended so; then the row about it.
  void Tell(const absl::Status& status) {
    ledger_->BeginPoll(tpu_, monotonic_);
    monotonic_ += absl::Seconds(1);
    ledger_->EndPoll(tpu_, monotonic_, now_,
                     {.status = status, .next = monotonic_ + retry_in_, .lost_rows = 7});
    PollNext();
  }
  void PollNext() {
    now_ += absl::Seconds(10);
    sink_.samples.clear();
    sink_.events.clear();
    source_.Poll(now_, &sink_);
  }
  // NaN: there is no such series.
  double Value(absl::string_view metric, absl::string_view label = "source=tpu") const {
    for (const testing::StoredSample& sample : sink_.samples) {
      if (sample.metric == metric && sample.label == label) return sample.value();
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  SpoolStats spool_;
  std::map<std::string, uint64_t> refused_;
  testing::RecordingSink sink_;
  std::vector<std::string> log_;
  std::shared_ptr<SourceLedger> ledger_ = std::make_shared<SourceLedger>();
  size_t tpu_ = ledger_->Add("tpu");
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Time monotonic_ = absl::FromUnixSeconds(50);
  absl::Duration retry_in_ = absl::Seconds(4);
  SelfSource source_;
};

TEST_F(SelfSourceTest, RowSaysHowEachSourceDoesAndWhatTheAgentCosts) {
  Tell(absl::OkStatus());
  EXPECT_EQ(Value("tacho_agent_source_up"), 1);
  EXPECT_EQ(Value("tacho_agent_source_polls_total"), 1);
  EXPECT_EQ(Value("tacho_agent_source_failures_total"), 0);
  EXPECT_EQ(Value("tacho_agent_source_poll_seconds_total"), 1);
  EXPECT_EQ(Value("tacho_agent_source_in_poll_seconds"), 0);
  EXPECT_GT(Value("tacho_agent_resident_memory_bytes", ""), 1e6);
  EXPECT_GE(Value("tacho_agent_cpu_seconds_total", ""), 0);
  EXPECT_EQ(sink_.samples.front().job, "hosts");
  EXPECT_EQ(sink_.samples.front().host, "host-a");
  EXPECT_THAT(sink_.events, IsEmpty());
}

TEST_F(SelfSourceTest, RowSaysWhoTheAgentIsWhatWaitsAndWhatWasLost) {
  Tell(absl::OkStatus());
  EXPECT_EQ(Value("tacho_agent_info", "agent_id=agent-aversion=1.2.3"), 1);
  EXPECT_EQ(Value("tacho_agent_spool_messages", ""), 3);
  EXPECT_EQ(Value("tacho_agent_spool_bytes", ""), 4096);
  EXPECT_EQ(Value("tacho_agent_rows_total", ""), 100);
  EXPECT_EQ(Value("tacho_agent_lost_rows_total", ""), 5);
  EXPECT_EQ(Value("tacho_agent_source_lost_rows_total"), 7);
  EXPECT_EQ(Value("tacho_agent_acknowledged_missing_messages_total", "fate=again"), 8);
  EXPECT_EQ(Value("tacho_agent_acknowledged_missing_messages_total", "fate=gone"), 9);
}

TEST_F(SelfSourceTest, FailingSourceSaysForHowLongAndWhenItIsTriedAgain) {
  Tell(absl::OkStatus());
  EXPECT_TRUE(std::isnan(Value("tacho_agent_source_failing_seconds")));
  EXPECT_TRUE(std::isnan(Value("tacho_agent_source_retry_seconds")));
  Tell(absl::UnavailableError("one"));
  EXPECT_EQ(Value("tacho_agent_source_failing_seconds"), 10);
  EXPECT_EQ(Value("tacho_agent_source_retry_seconds"), 4);
  Tell(absl::UnavailableError("another, and it goes on"));
  EXPECT_EQ(Value("tacho_agent_source_failing_seconds"), 20);
  Tell(absl::OkStatus());
  EXPECT_TRUE(std::isnan(Value("tacho_agent_source_failing_seconds")));
}

TEST_F(SelfSourceTest, RowSaysWhatTheSpoolHasLostByReason) {
  spool_.Of(SpoolLoss::kBytes) = {.messages = 2, .rows = 20};
  spool_.Of(SpoolLoss::kAge) = {.messages = 3, .rows = 30};
  spool_.Of(SpoolLoss::kDisk) = {.messages = 0, .rows = 5};
  PollNext();
  EXPECT_EQ(Value("tacho_agent_spool_lost_rows_total", "reason=bytes"), 20);
  EXPECT_EQ(Value("tacho_agent_spool_lost_rows_total", "reason=age"), 30);
  EXPECT_EQ(Value("tacho_agent_spool_lost_rows_total", "reason=disk"), 5);
  EXPECT_EQ(Value("tacho_agent_spool_lost_rows_total", "reason=refused"), 0);
  EXPECT_EQ(Value("tacho_agent_spool_lost_messages_total", "reason=age"), 3);
}

TEST_F(SelfSourceTest, RowSaysWhatTheCollectorRefusedByReason) {
  refused_ = {{"too_old", 114'128}, {"series_limit", 7}};
  PollNext();
  EXPECT_EQ(Value("tacho_agent_refused_samples_total", "reason=too_old"), 114'128);
  EXPECT_EQ(Value("tacho_agent_refused_samples_total", "reason=series_limit"), 7);
}

TEST_F(SelfSourceTest, FailureIsAMetricWithItsCodeAndAnEventWithItsReason) {
  Tell(absl::UnavailableError("libtpu answers on no port of 8431"));
  EXPECT_EQ(Value("tacho_agent_source_up"), 0);
  EXPECT_EQ(Value("tacho_agent_source_failing", "source=tpureason=UNAVAILABLE"), 1);
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "source_failed");
  EXPECT_EQ(sink_.events[0].message(), "libtpu answers on no port of 8431");
  EXPECT_EQ(sink_.events[0].source().host(), "host-a");
  EXPECT_EQ(sink_.events[0].fields().at("source"), "tpu");
  EXPECT_EQ(sink_.events[0].fields().at("code"), "UNAVAILABLE");
  EXPECT_THAT(log_,
              ElementsAre(::testing::AllOf(HasSubstr("a source fails"), HasSubstr("source=tpu"))));
}

TEST_F(SelfSourceTest, SameReasonIsToldOnceAnotherOneAgainAndTheCure) {
  Tell(absl::UnavailableError("one"));
  Tell(absl::UnavailableError("one"));
  EXPECT_THAT(sink_.events, IsEmpty());
  Tell(absl::UnavailableError("two"));
  EXPECT_THAT(sink_.events, SizeIs(1));
  Tell(absl::OkStatus());
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "source_recovered");
  EXPECT_EQ(Value("tacho_agent_source_up"), 1);
  EXPECT_EQ(Value("tacho_agent_source_failures_total"), 3);
}

TEST_F(SelfSourceTest, PollThatDoesNotReturnIsAFailure) {
  Tell(absl::OkStatus());
  ledger_->BeginPoll(tpu_, monotonic_);
  monotonic_ += absl::Seconds(59);
  PollNext();
  EXPECT_EQ(Value("tacho_agent_source_up"), 1);
  EXPECT_EQ(Value("tacho_agent_source_in_poll_seconds"), 59);
  monotonic_ += absl::Seconds(1);
  PollNext();
  EXPECT_EQ(Value("tacho_agent_source_up"), 0);
  EXPECT_EQ(Value("tacho_agent_source_failing", "source=tpureason=DEADLINE_EXCEEDED"), 1);
  EXPECT_EQ(Value("tacho_agent_source_failing_seconds"), 60);
  EXPECT_EQ(Value("tacho_agent_source_retry_seconds"), 0) << "it is being tried";
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_THAT(sink_.events[0].message(), HasSubstr("its poll has not returned for 1m"));
}

TEST_F(SelfSourceTest, EventThatTheSpoolRefusesIsToldAtTheNextPoll) {
  sink_.RefuseAfter(1);
  Tell(absl::UnavailableError("one"));
  EXPECT_THAT(sink_.events, IsEmpty());
  sink_.RefuseNothing();
  PollNext();
  EXPECT_THAT(sink_.events, SizeIs(1));
}

}  // namespace
}  // namespace tacho::agent

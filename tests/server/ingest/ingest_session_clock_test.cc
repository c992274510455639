// Rows are not refused for their times while it may be the collector's clock that is wrong.
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "server/errors/error_table.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::HasSubstr;

constexpr int64_t kDayNs = int64_t{24 * 3600} * 1'000'000'000;

class SessionClockTest : public StreamSessionTest {
 protected:
  SessionClockTest() {
    context_.clocks = &clocks_;
    context_.clock_watch = &watch_;
  }

  // As an agent sends it whose clock is ahead of the collector's.
  static v1::ClientMessage HelloAhead(const std::string& agent, int64_t ahead_ns) {
    v1::ClientMessage message = HelloMessage(agent);
    message.mutable_hello()->set_clock_unix_ns(kNowNs + ahead_ns);
    return message;
  }
  static v1::ClientMessage BatchAhead(uint64_t sequence, int64_t ahead_ns) {
    v1::ClientMessage message = BatchMessage(sequence);
    for (int64_t& time : *message.mutable_batch()->mutable_times_unix_ns()) time += ahead_ns;
    return message;
  }
  static v1::ClientMessage EventAhead(uint64_t sequence, int64_t ahead_ns) {
    v1::ClientMessage message = EventMessage(sequence);
    message.mutable_event()->set_time_unix_ns(kNowNs + ahead_ns);
    return message;
  }
  uint64_t Durable(const std::string& agent) {
    store_.AwaitSettled();
    return store_->DurableSequences(agent, 7).watermark();
  }
  static void ExpectHeldBack(const absl::Status& status) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(errors::RowOf(status).failure, errors::Failure::kClockDoubted) << status;
  }
  double Refused(const std::string& reason) {
    return Counter("tacho_ingest_samples_rejected_total", reason);
  }

  absl::Duration jump_;
  absl::Time uptime_ = absl::UnixEpoch();
  AgentClocks clocks_{now_, [this] { return uptime_; }};
  process::ClockWatch watch_{{.now = [this] { return now_() + jump_; },
                              .monotonic = [this] { return uptime_; },
                              .votes = [this] { return clocks_.Votes(); },
                              .registry = &registry_}};
};

TEST_F(SessionClockTest, RowsAreHeldBackAndNotRefusedIfTheirAgentMayBeRight) {
  for (const int64_t ahead_ns : {kDayNs, -100 * kDayNs}) {
    const std::string agent = "agent" + std::to_string(ahead_ns);
    StreamSession session = NewSession();
    Greet(&session, HelloAhead(agent, ahead_ns));
    EXPECT_TRUE(Send(&session, {LayoutMessage()}).ok());
    const absl::Status held = Send(&session, {BatchAhead(1, ahead_ns)});
    ExpectHeldBack(held);
    EXPECT_THAT(held.message(), HasSubstr("the clocks of "));
    ExpectHeldBack(Send(&session, {EventAhead(1, ahead_ns)}));
    EXPECT_EQ(Durable(agent), 0u) << "the agent keeps them";
    EXPECT_TRUE(acks_->TakeAck().rejects().empty());
    EXPECT_EQ(Refused("future") + Refused("too_old"), 0);
    agents_.Release(1);
  }
}

TEST_F(SessionClockTest, OneOfManyWithAWrongClockIsRefusedAsBefore) {
  const auto second = clocks_.Join("second", now_());
  auto third = clocks_.Join("third", now_());
  StreamSession session = NewSession();
  Greet(&session, HelloAhead("wrong", kDayNs));
  EXPECT_TRUE(Send(&session, {LayoutMessage(), BatchAhead(1, kDayNs)}).ok());
  EXPECT_EQ(Durable("wrong"), 1u);
  EXPECT_EQ(acks_->TakeAck().rejects(0).reason(), v1::Reject::REASON_FUTURE);
  third = clocks_.Join("third", now_() + absl::Hours(24));
  ExpectHeldBack(Send(&session, {BatchAhead(2, kDayNs)}));
}

TEST_F(SessionClockTest, WhatIsHeldBackStaysSoWhileTheRightAgentsComeAndGo) {
  const auto here = clocks_.Join("on-the-collectors-host", now_());
  for (const std::string agent : {"a", "b", "a", "b"}) {
    StreamSession session = NewSession();
    Greet(&session, HelloAhead(agent, kDayNs));
    ExpectHeldBack(Send(&session, {LayoutMessage(), BatchAhead(1, kDayNs)}));
    agents_.Release(1);
  }
  EXPECT_EQ(Durable("a") + Durable("b"), 0u);
}

TEST_F(SessionClockTest, RowsWithinTheWindowAreStoredInAnyDoubt) {
  StreamSession session = NewSession();
  Greet(&session, HelloAhead("agent", kDayNs));
  EXPECT_TRUE(Send(&session, {LayoutMessage(), BatchMessage(1), EventMessage(2)}).ok());
  EXPECT_EQ(Durable("agent"), 2u);
}

TEST_F(SessionClockTest, AfterAJumpRowsAreHeldBackThoughNoAgentHasSaidItsTime) {
  StreamSession session = NewSession();
  Greet(&session, HelloAhead("agent", -kNowNs));
  EXPECT_TRUE(Send(&session, {LayoutMessage()}).ok());
  jump_ = absl::Hours(1);
  watch_.Look();
  ExpectHeldBack(Send(&session, {BatchAhead(1, kDayNs)}));
  jump_ = absl::ZeroDuration();
  watch_.Look();
  EXPECT_TRUE(Send(&session, {BatchAhead(1, kDayNs)}).ok());
  EXPECT_EQ(Durable("agent"), 1u);
}

}  // namespace
}  // namespace tacho::server::ingest

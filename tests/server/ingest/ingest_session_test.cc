#include <bit>
#include <limits>

#include "gmock/gmock.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(StreamSessionTest, WelcomeTellsLimitsClockAndVersion) {
  StreamSession session = NewSession();
  const v1::Welcome welcome = Greet(&session);
  EXPECT_EQ(welcome.durable_sequence(), 0u);
  EXPECT_EQ(welcome.limits().max_rows_per_batch(), 100u);
  EXPECT_EQ(welcome.limits().max_layouts(), 4u);
  EXPECT_EQ(welcome.limits().max_series_per_layout(), 8u);
  EXPECT_EQ(welcome.limits().max_message_bytes(), 65536u);
  EXPECT_EQ(welcome.clock_unix_ns(), kNowNs);
  EXPECT_EQ(welcome.echo_unix_ns(), kNowNs);
  EXPECT_EQ(welcome.version(), "9.9");
}

TEST_F(StreamSessionTest, EveryMalformedMessageIsRefusedWithItsFieldAndLeavesNothing) {
  for (const Malformed& malformed : AllMalformed()) {
    SCOPED_TRACE(malformed.name);
    StreamSession session = NewSession();
    ASSERT_TRUE(Send(&session, malformed.before).ok());
    const auto answer = session.Handle(malformed.message);
    EXPECT_EQ(answer.status().code(), malformed.code) << answer.status();
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr(malformed.text));
    agents_.Release(1);
  }
  store_.AwaitSettled();
  EXPECT_THAT(store_.stored(), IsEmpty());
  EXPECT_THAT(store_.losses(), IsEmpty());
  EXPECT_EQ(store_->DurableSequences("agent-1", 7), storage::SequenceSet());
  EXPECT_EQ(Counter("tacho_ingest_messages_refused_total", "no_hello"), 1);
  EXPECT_GT(Counter("tacho_ingest_messages_refused_total", "text"), 5);
}

TEST_F(StreamSessionTest, DrainingRefusesEverythingWithUnavailable) {
  StreamSession session = NewSession();
  Greet(&session);
  admission_.StartDraining();
  EXPECT_EQ(session.Handle(LayoutMessage()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(StreamSessionTest, EveryBitOfAValueReachesTheStore) {
  StreamSession session = NewSession();
  const std::vector<uint64_t> bits = {0x7ff0000000000002, 0x7ff8000000abcdef, 0xfff0000000000001,
                                      0x8000000000000000, 0x7ff0000000000000, 1};
  std::vector<double> values;
  for (const uint64_t value : bits) values.push_back(std::bit_cast<double>(value));
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(2), BatchMessage(1, values, 3)}).ok());
  ASSERT_THAT(store_.stored(), SizeIs(1));
  EXPECT_EQ(store_.stored()[0].value_bits, bits);
  EXPECT_EQ(store_.stored()[0].steps, (std::vector<int64_t>{0, 1, 2}));
}

// A stream that held on to its layouts would keep every job in memory that it ever served.
TEST_F(StreamSessionTest, ALayoutIsNotHeldAndIsMissedOnceItsJobHasExpired) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(2), BatchMessage(1, {1, 2}, 1)}).ok());
  store_.ExpireJobs();
  EXPECT_EQ(Send(&session, {BatchMessage(2, {1, 2}, 1)}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(store_.stored(), SizeIs(1));
  ASSERT_TRUE(Send(&session, {LayoutMessage(2), BatchMessage(2, {1, 2}, 1)}).ok());
  EXPECT_THAT(store_.stored(), SizeIs(2));
}

TEST_F(StreamSessionTest, LabelsAreSortedAndUnspecifiedTypeIsGauge) {
  StreamSession session = NewSession();
  auto layout = LayoutMessage(1);
  auto* label = layout.mutable_layout()->mutable_series(0)->add_labels();
  label->set_name("axis");
  label->set_value("x");
  ASSERT_TRUE(Send(&session, {HelloMessage(), layout, BatchMessage(1, {5})}).ok());
  const storage::Series& series = *store_.stored()[0].layout->series[0];
  EXPECT_THAT(series.labels->labels, ElementsAre(storage::LabelSet::Label("axis", "x"),
                                                 storage::LabelSet::Label("chip", "0")));
  EXPECT_EQ(series.metric->type, storage::MetricType::kGauge);
}

TEST_F(StreamSessionTest, RowsOutsideTheWindowAreDroppedAndReported) {
  StreamSession session = NewSession();
  auto batch = BatchMessage(1, {1, 2, 3, 4, 5, 6}, 3);
  const int64_t minute = 60'000'000'000;
  batch.mutable_batch()->set_times_unix_ns(0, kNowNs + 11 * minute);
  batch.mutable_batch()->set_times_unix_ns(2, kNowNs - 25 * 60 * minute);
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), batch}).ok());
  ASSERT_THAT(store_.stored(), SizeIs(1));
  EXPECT_EQ(store_.stored()[0].value_bits,
            (std::vector<uint64_t>{std::bit_cast<uint64_t>(3.0), std::bit_cast<uint64_t>(4.0)}));
  EXPECT_THAT(store_.stored()[0].steps, ElementsAre(1));
  const v1::Ack ack = acks_->TakeAck();
  ASSERT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_FUTURE);
  EXPECT_EQ(ack.rejects(0).samples(), 2u);
  EXPECT_EQ(ack.rejects(0).example(), "loss{chip=\"0\"}");
  EXPECT_THAT(ack.rejects(0).detail(), HasSubstr("10m"));
  EXPECT_EQ(ack.rejects(1).reason(), v1::Reject::REASON_TOO_OLD);
  EXPECT_EQ(Counter("tacho_ingest_samples_rejected_total", "too_old"), 2);
  EXPECT_EQ(Counter("tacho_ingest_samples_accepted_total"), 2);
}

TEST_F(StreamSessionTest, EdgesOfTheWindowAreInside) {
  StreamSession session = NewSession();
  auto batch = BatchMessage(1, {1, 2, 3, 4}, 2);
  const TimeWindow window = admission_.Window();
  batch.mutable_batch()->set_times_unix_ns(0, window.oldest_ns);
  batch.mutable_batch()->set_times_unix_ns(1, window.newest_ns);
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), batch}).ok());
  EXPECT_THAT(store_.stored()[0].times, SizeIs(2));
  EXPECT_EQ(acks_->TakeAck().rejects_size(), 0);
}

// No arithmetic on a time that somebody else chose may overflow.
TEST_F(StreamSessionTest, ExtremeTimesAreRefusedWithTheirReason) {
  StreamSession session = NewSession();
  auto batch = BatchMessage(1, {1, 2, 3, 4, 5, 6}, 3);
  batch.mutable_batch()->set_times_unix_ns(0, INT64_MAX);
  batch.mutable_batch()->set_times_unix_ns(1, 0);
  batch.mutable_batch()->set_times_unix_ns(2, INT64_MAX - 1);
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), batch}).ok());
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 1u);
  ASSERT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_FUTURE);
  EXPECT_EQ(ack.rejects(0).samples(), 4u);
  EXPECT_EQ(ack.rejects(1).reason(), v1::Reject::REASON_TOO_OLD);
  EXPECT_EQ(ack.rejects(1).samples(), 2u);
  batch.mutable_batch()->set_sequence(2);
  batch.mutable_batch()->set_times_unix_ns(0, INT64_MIN);
  EXPECT_EQ(session.Handle(batch).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StreamSessionTest, EventOutsideTheWindowIsReportedAndDoesNotComeBack) {
  StreamSession session = NewSession();
  auto future = EventMessage(1);
  future.mutable_event()->set_time_unix_ns(INT64_MAX);
  auto old = EventMessage(2);
  old.mutable_event()->set_time_unix_ns(1);
  ASSERT_TRUE(Send(&session, {HelloMessage(), future, old, EventMessage(3)}).ok());
  ASSERT_THAT(store_.stored(), SizeIs(1));
  EXPECT_EQ(store_.stored()[0].kind, "event");
  EXPECT_EQ(store_.stored()[0].event.time_ns, kNowNs);
  EXPECT_THAT(store_.losses(), IsEmpty());
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 3u);
  ASSERT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_FUTURE);
  EXPECT_EQ(ack.rejects(0).example(), "checkpoint_saved");
  EXPECT_EQ(ack.rejects(1).reason(), v1::Reject::REASON_TOO_OLD);
}

TEST_F(StreamSessionTest, EventsAndAttributesReachTheStoreWhole) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), EventMessage(1), AttributesMessage(2)}).ok());
  ASSERT_THAT(store_.stored(), SizeIs(1));
  const storage::Event event = store_.stored()[0].event;
  EXPECT_EQ(event.source.job, "vision");
  EXPECT_EQ(event.source.task, std::nullopt);
  EXPECT_EQ(event.step, 12);
  EXPECT_EQ(event.kind, "checkpoint_saved");
  EXPECT_EQ(event.fields.at("path"), "/ckpt/12");
  const auto attempts = store_->Attempts("vision");
  ASSERT_TRUE(attempts.ok()) << attempts.status();
  ASSERT_THAT(*attempts, SizeIs(1));
  EXPECT_EQ(attempts->front().attributes.at("model"), "resnet");
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 2u);
}

TEST_F(StreamSessionTest, GapMakesWhatIsLostDurable) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), GapMessage(11, 1, 10)}).ok());
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 11u);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 10);
}

TEST_F(StreamSessionTest, GapInThePlaceOfAMessageLeavesNoHoleAndIsRecorded) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), EventMessage(1), GapMessage(2, 2, 2)}).ok());
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 2u);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 1);
  ASSERT_THAT(store_.losses(), SizeIs(1));
  EXPECT_EQ(store_.losses()[0].fields.at("first_sequence"), "2");
  EXPECT_EQ(store_.losses()[0].fields.at("last_sequence"), "2");
}

TEST_F(StreamSessionTest, ReconnectResumesBehindWhatIsDurable) {
  StreamSession first = NewSession(1);
  ASSERT_TRUE(Send(&first, {HelloMessage(), LayoutMessage(), BatchMessage(1), BatchMessage(2),
                            BatchMessage(5)})
                  .ok());
  agents_.Release(1);
  StreamSession second = NewSession(2);
  const v1::Welcome welcome = Greet(&second);
  EXPECT_EQ(welcome.durable_sequence(), 2u);
  ASSERT_EQ(welcome.durable_ahead_size(), 1);
  EXPECT_EQ(welcome.durable_ahead(0).first(), 5u);
  ASSERT_TRUE(Send(&second, {LayoutMessage(), BatchMessage(2), BatchMessage(3)}).ok());
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 3u);
  EXPECT_THAT(store_.stored(), SizeIs(4)) << "the repeat is stored once";
}

TEST_F(StreamSessionTest, HolesBelowTheSpoolsFirstSequenceAreClosed) {
  StreamSession first = NewSession(1);
  ASSERT_TRUE(
      Send(&first, {HelloMessage(), LayoutMessage(), BatchMessage(3), BatchMessage(20)}).ok());
  agents_.Release(1);
  StreamSession second = NewSession(2);
  Greet(&second, HelloMessage("agent-1", 7, 10));
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 9u);
  ASSERT_EQ(ack.durable_ahead_size(), 1);
  EXPECT_EQ(ack.durable_ahead(0).first(), 20u);
}

TEST_F(StreamSessionTest, WhatAnotherCollectorMayHaveIsClosedButNoLoss) {
  v1::ClientMessage hello = HelloMessage("agent-1", 7, 10);
  StreamSession alone = NewSession(1);
  Greet(&alone, hello);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 9);
  agents_.Release(1);

  hello = HelloMessage("agent-2", 7, 10);
  hello.mutable_hello()->set_several_collectors(true);
  StreamSession one_of_two = NewSession(2);
  Greet(&one_of_two, hello);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 9);
  EXPECT_EQ(store_->DurableSequences("agent-2", 7).watermark(), 9u);
}

TEST_F(StreamSessionTest, WhatWasAcknowledgedAndIsMissingIsCountedAndRecordedAsSuch) {
  constexpr char kMissing[] = "tacho_ingest_acknowledged_missing_messages_total";
  StreamSession first = NewSession(1);
  ASSERT_TRUE(Send(&first, {HelloMessage(), LayoutMessage(), BatchMessage(1), BatchMessage(2),
                            BatchMessage(5)})
                  .ok());
  agents_.Release(1);
  EXPECT_EQ(Counter(kMissing, "gone"), 0);
  // Of 1 to 12, which were acknowledged, 3, 4, 6 and 7 are gone, and 8 to 12 are in the spool.
  v1::ClientMessage hello = HelloMessage("agent-1", 7, 8);
  hello.mutable_hello()->set_acknowledged_sequence(12);
  hello.mutable_hello()->set_several_collectors(true);
  StreamSession second = NewSession(2);
  EXPECT_EQ(Greet(&second, hello).durable_sequence(), 2u);
  EXPECT_EQ(Counter(kMissing, "gone"), 4);
  EXPECT_EQ(Counter(kMissing, "again"), 5);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 4) << "also of an agent of several";
  ASSERT_THAT(store_.losses(), SizeIs(2));
  EXPECT_THAT(store_.losses()[0].message, HasSubstr("whose store has lost it since"));
  EXPECT_EQ(store_.losses()[1].fields.at("last_sequence"), "7");
}

// A Hello cannot be checked: the counters must go on counting after one that is not true.
TEST_F(StreamSessionTest, OneReportAddsABoundedNumberToTheCountersOfLosses) {
  constexpr uint64_t kHighest = uint64_t{1} << 62;
  v1::ClientMessage hello = HelloMessage("foreign", 7, kHighest - 1);
  hello.mutable_hello()->set_acknowledged_sequence(kHighest);
  StreamSession session = NewSession();
  Greet(&session, hello);
  constexpr char kMissing[] = "tacho_ingest_acknowledged_missing_messages_total";
  EXPECT_EQ(Counter(kMissing, "gone"), IngestMetrics::kMostReported);
  EXPECT_EQ(Counter(kMissing, "again"), 2);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), IngestMetrics::kMostReported);
  hello = HelloMessage("honest", 7, IngestMetrics::kMostReported);
  hello.mutable_hello()->set_acknowledged_sequence(IngestMetrics::kMostReported - 1);
  StreamSession honest = NewSession(2);
  Greet(&honest, hello);
  EXPECT_EQ(Counter(kMissing, "gone"), 2 * IngestMetrics::kMostReported - 1);
}

TEST_F(StreamSessionTest, WhatTheSpoolLostIsToldApartFromWhatTheStoreLost) {
  v1::ClientMessage hello = HelloMessage("agent-1", 7, 10);
  hello.mutable_hello()->set_acknowledged_sequence(6);
  StreamSession session = NewSession();
  Greet(&session, hello);
  EXPECT_EQ(Counter("tacho_ingest_acknowledged_missing_messages_total", "gone"), 6);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 9);
  ASSERT_THAT(store_.losses(), SizeIs(2));
  EXPECT_THAT(store_.losses()[0].message, HasSubstr("does not know the agent's spool"));
  EXPECT_EQ(store_.losses()[0].fields.at("last_sequence"), "6");
  EXPECT_EQ(store_.losses()[1].message, "no longer in the agent's spool");
  EXPECT_EQ(store_.losses()[1].fields.at("first_sequence"), "7");
}

TEST_F(StreamSessionTest, AcknowledgementThatIsTrueIsNoLoss) {
  StreamSession first = NewSession(1);
  ASSERT_TRUE(
      Send(&first, {HelloMessage(), LayoutMessage(), BatchMessage(1), BatchMessage(2)}).ok());
  agents_.Release(1);
  v1::ClientMessage hello = HelloMessage("agent-1", 7, 3);
  hello.mutable_hello()->set_acknowledged_sequence(2);
  StreamSession second = NewSession(2);
  Greet(&second, hello);
  EXPECT_EQ(Counter("tacho_ingest_acknowledged_missing_messages_total", "gone"), 0);
  EXPECT_EQ(Counter("tacho_ingest_acknowledged_missing_messages_total", "again"), 0);
  EXPECT_THAT(store_.losses(), IsEmpty());
}

TEST_F(StreamSessionTest, SameAgentWithAnotherSpoolIsRefusedWhileTheFirstLives) {
  StreamSession first = NewSession(1);
  Greet(&first);
  StreamSession second = NewSession(2);
  EXPECT_EQ(second.Handle(HelloMessage("agent-1", 8)).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(evicted_, IsEmpty());
  agents_.Release(1);
  StreamSession third = NewSession(3);
  EXPECT_TRUE(third.Handle(HelloMessage("agent-1", 8)).ok());
}

TEST_F(StreamSessionTest, NewerStreamOfTheSameSpoolEvictsTheOlder) {
  StreamSession first = NewSession(1);
  Greet(&first);
  StreamSession second = NewSession(2);
  Greet(&second);
  EXPECT_THAT(evicted_, ElementsAre(1));
  agents_.Release(1);  // The old one goes later; the new one still speaks for the agent.
  StreamSession third = NewSession(3);
  EXPECT_EQ(third.Handle(HelloMessage("agent-1", 8)).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StreamSessionTest, LayoutDefinedAgainReplacesTheFirst) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session,
                   {HelloMessage(), LayoutMessage(2), LayoutMessage(3), BatchMessage(1, {1, 2, 3})})
                  .ok());
  EXPECT_EQ(session.Handle(BatchMessage(2, {1, 2})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tacho::server::ingest

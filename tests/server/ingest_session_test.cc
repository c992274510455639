#include <bit>
#include <limits>
#include <map>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/ingest/stream_session.h"
#include "tests/server/ingest_fake_store.h"
#include "tests/server/ingest_malformed.h"
#include "tests/server/ingest_messages.h"

namespace tacho::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StreamSessionTest : public testing::Test {
 protected:
  StreamSessionTest() { store_.CommitAtOnce(); }

  std::shared_ptr<AckCoalescer> NewAcks() {
    return std::make_shared<AckCoalescer>(
        AckCoalescer::Options{&store_, &total_pending_, now_, [this] { ++wakes_; }});
  }
  StreamSession NewSession(uint64_t stream = 1) {
    acks_ = NewAcks();
    return {&context_, acks_, stream, [this, stream] { evicted_.push_back(stream); }};
  }
  // Sends all; the status of the first that fails.
  absl::Status Send(StreamSession* session, const std::vector<v1::ClientMessage>& messages) {
    for (const auto& message : messages) {
      if (auto answer = session->Handle(message); !answer.ok()) return answer.status();
    }
    return absl::OkStatus();
  }
  v1::Welcome Greet(StreamSession* session, const v1::ClientMessage& hello = HelloMessage()) {
    auto answer = session->Handle(hello);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && answer->has_value() ? **answer : v1::Welcome();
  }
  double Counter(const std::string& name, const std::string& label_value = "") {
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        if (label_value.empty() || metric.label[0].value == label_value) {
          return metric.counter.value;
        }
      }
    }
    return -1;
  }

  double LimitCounter(const std::string& limit, const std::string& action) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_limit_series_total") continue;
      for (const auto& metric : family.metric) {
        std::map<std::string, std::string> labels;
        for (const auto& label : metric.label) labels[label.name] = label.value;
        if (labels["limit"] == limit && labels["action"] == action) return metric.counter.value;
      }
    }
    return -1;
  }

  const std::function<absl::Time()> now_ = [] { return absl::FromUnixNanos(kNowNs); };
  FakeStore store_;
  prometheus::Registry registry_;
  IngestMetrics metrics_{&registry_};
  Admission admission_{{SmallLimits(), absl::Hours(24), now_, &metrics_}};
  AgentRegistry agents_;
  PendingBytes total_pending_;
  Quotas quotas_{{.config = SmallQuotas(), .registry = &registry_}};
  static config::v1::Limits SmallSeriesLimits() {
    config::v1::Limits limits;
    limits.set_definitions_per_second(10);
    limits.set_definitions_burst(absl::ToInt64Nanoseconds(absl::Seconds(1)));
    return limits;
  }
  SeriesLimiting limiting_{&store_, &registry_, SmallSeriesLimits()};
  SessionContext context_{&store_, &admission_, &agents_, &metrics_,
                          now_,    "9.9",       &quotas_, &limiting_};
  std::shared_ptr<AckCoalescer> acks_;
  std::vector<uint64_t> evicted_;
  int wakes_ = 0;
};

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
  EXPECT_THAT(store_.stored(), IsEmpty());
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
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(2)}).ok());
  store_.ForgetLayouts();
  EXPECT_EQ(Send(&session, {BatchMessage(1, {1, 2}, 1)}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Send(&session, {LayoutMessage(2), BatchMessage(1, {1, 2}, 1)}).ok());
  EXPECT_THAT(store_.stored(), SizeIs(1));
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
  ASSERT_THAT(store_.stored(), SizeIs(3));
  EXPECT_EQ(store_.stored()[0].kind, "gap");
  EXPECT_EQ(store_.stored()[1].kind, "gap");
  EXPECT_EQ(store_.stored()[2].kind, "event");
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 3u);
  ASSERT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_FUTURE);
  EXPECT_EQ(ack.rejects(0).example(), "checkpoint_saved");
  EXPECT_EQ(ack.rejects(1).reason(), v1::Reject::REASON_TOO_OLD);
}

TEST_F(StreamSessionTest, PastTheAgentsRateABatchIsTakenAndPaidForWithTime) {
  auto config = SmallQuotas();
  config.set_agent_samples_per_second(10);
  config::v1::Collector collector;
  *collector.mutable_quotas() = config;
  (*quotas_.Prepare(collector))();
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, Quotas::Limit::kNone) << "the burst";
  ASSERT_TRUE(Send(&session, {BatchMessage(1, std::vector<double>(80), 10)}).ok());
  EXPECT_EQ(session.wait().limit, Quotas::Limit::kAgentRate);
  EXPECT_GT(session.wait().length, absl::Seconds(6));
  EXPECT_LT(session.wait().length, absl::Seconds(9));
  EXPECT_EQ(session.RowsPerSecond(), 1u);
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 1u);
  // A new stream of the agent is no way around it; another agent is not held back.
  agents_.Release(1);
  StreamSession again = NewSession(2);
  ASSERT_TRUE(Send(&again, {HelloMessage(), LayoutMessage(1)}).ok());
  EXPECT_GT(again.wait().length, absl::Seconds(6));
  StreamSession other = NewSession(3);
  ASSERT_TRUE(Send(&other, {HelloMessage("other"), LayoutMessage(1)}).ok());
  EXPECT_EQ(other.wait().limit, Quotas::Limit::kNone);
}

TEST_F(StreamSessionTest, AJobsRateIsSharedByItsAgents) {
  auto config = SmallQuotas();
  config.set_job_samples_per_second(10);
  config::v1::Collector collector;
  *collector.mutable_quotas() = config;
  (*quotas_.Prepare(collector))();
  StreamSession first = NewSession(1);
  ASSERT_TRUE(Send(&first, {HelloMessage("a"), LayoutMessage(8),
                            BatchMessage(1, std::vector<double>(80), 10)})
                  .ok());
  EXPECT_EQ(first.wait().limit, Quotas::Limit::kJobRate);
  StreamSession second = NewSession(2);
  auto elsewhere = LayoutMessage(1, 2);
  elsewhere.mutable_layout()->mutable_source()->set_job("speech");
  ASSERT_TRUE(Send(&second, {HelloMessage("b"), LayoutMessage(1), elsewhere}).ok());
  ASSERT_TRUE(Send(&second, {BatchMessage(1, {1}, 1, 1)}).ok());
  EXPECT_GT(second.wait().length, first.wait().length);
  ASSERT_TRUE(Send(&second, {BatchMessage(2, {1}, 1, 2)}).ok());
  EXPECT_EQ(second.wait().limit, Quotas::Limit::kNone);
}

TEST_F(StreamSessionTest, ColumnsPastALimitAreDroppedAndReportedByLimit) {
  store_.SetMaxSeriesPerLayout(2);  // Columns 2 and 4 pass the store's limit, 3 the job's.
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(5),
                              BatchMessage(1, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2)})
                  .ok());
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_THAT(store_.stored()[0].value_bits, ElementsAre(bits(1), bits(2), bits(6), bits(7)));
  const v1::Ack ack = acks_->TakeAck();
  ASSERT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_SERIES_LIMIT);
  EXPECT_EQ(ack.rejects(0).samples(), 4u);
  EXPECT_EQ(ack.rejects(0).example(), "metric_2{chip=\"2\"}");
  EXPECT_EQ(ack.rejects(1).reason(), v1::Reject::REASON_JOB_LIMIT);
  EXPECT_EQ(ack.rejects(1).samples(), 2u);
}

TEST_F(StreamSessionTest, ASeriesThatBreaksARuleIsRefusedByItself) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  uint64_t sequence = 0;
  for (const InvalidSeries& invalid : AllInvalidSeries()) {
    SCOPED_TRACE(invalid.name);
    StreamSession session = NewSession(1);
    ++sequence;
    ASSERT_TRUE(
        Send(&session, {HelloMessage(), invalid.layout, BatchMessage(sequence, {3, 4})}).ok());
    EXPECT_THAT(store_.stored().back().value_bits, ElementsAre(bits(3)));
    const v1::Ack ack = acks_->TakeAck();
    ASSERT_EQ(ack.rejects_size(), 1);
    EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_LABEL_INVALID);
    EXPECT_EQ(ack.rejects(0).samples(), 1u);
    EXPECT_EQ(ack.rejects(0).series(), 1u);
    EXPECT_THAT(ack.rejects(0).detail(), HasSubstr(invalid.text));
    agents_.Release(1);
  }
  EXPECT_EQ(LimitCounter("names", "reject"), static_cast<double>(sequence));
}

TEST_F(StreamSessionTest, ALayoutOfNothingButInvalidSeriesStoresNothingAndGoesOn) {
  auto layout = LayoutMessage(1);
  layout.mutable_layout()->mutable_series(0)->mutable_metric()->clear_name();
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), layout, BatchMessage(1, {3})}).ok());
  EXPECT_EQ(store_.stored()[0].kind, "gap");
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 1u);
}

TEST_F(StreamSessionTest, ColumnsBehindAnInvalidSeriesKeepTheirPlace) {
  auto layout = LayoutMessage(4);
  layout.mutable_layout()->mutable_series(1)->mutable_metric()->clear_name();
  store_.SetMaxSeriesPerLayout(2);  // Of what is left: the last is refused for the store's sake.
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), layout, BatchMessage(1, {1, 2, 3, 4})}).ok());
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_THAT(store_.stored()[0].value_bits, ElementsAre(bits(1), bits(3)));
  EXPECT_EQ(acks_->TakeAck().rejects(0).example(), "metric_3{chip=\"3\"}");
}

TEST_F(StreamSessionTest, FoldedColumnsAreAddedUpRowByRow) {
  store_.SetFolded({1, 3, 4});
  StreamSession session = NewSession();
  const double stale = std::bit_cast<double>(storage::kStaleMarkerBits);
  const double odd_nan = std::bit_cast<double>(uint64_t{0x7ff8000000abcdef});
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(5),
                              BatchMessage(1, {1,  10,    2,  20,      30,     //
                                               -1, stale, -2, 20,      30,     //
                                               7,  stale, 8,  odd_nan, stale,  //
                                               9,  stale, 9,  stale,   stale},
                                           4)})
                  .ok());
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_THAT(store_.stored()[0].value_bits,
              ElementsAre(bits(1), bits(2), bits(60), bits(-1), bits(-2), bits(50), bits(7),
                          bits(8), bits(odd_nan), bits(9), bits(9), storage::kStaleMarkerBits));
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.rejects_size(), 0);
  ASSERT_EQ(ack.folded_size(), 1);
  EXPECT_EQ(ack.folded(0).reason(), v1::Reject::REASON_LABEL_LIMIT);
  EXPECT_EQ(ack.folded(0).samples(), 12u);
  EXPECT_EQ(ack.folded(0).series(), 3u);
  EXPECT_THAT(ack.folded(0).detail(), HasSubstr("limits.values_per_label is 20000"));
  EXPECT_EQ(Counter("tacho_ingest_samples_folded_total"), 12);
  EXPECT_EQ(LimitCounter("values_per_label", "fold"), 3);
  const auto top = limiting_.ledger().Top("vision", 10);
  ASSERT_THAT(top, SizeIs(1));
  EXPECT_EQ(top[0].name, "chip");
  EXPECT_EQ(top[0].series, 3u);
}

TEST_F(StreamSessionTest, EventsOfAJobTooManyAreRefusedAndDurable) {
  store_.SetRoomForJobs(false);
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), EventMessage(1), AttributesMessage(2)}).ok());
  EXPECT_THAT(store_.stored(), SizeIs(2));
  EXPECT_EQ(store_.stored()[0].kind, "gap");
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 2u);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_JOBS_LIMIT);
  EXPECT_EQ(ack.rejects(0).samples(), 2u);
  EXPECT_EQ(LimitCounter("jobs", "reject"), 2);
}

TEST_F(StreamSessionTest, WhoDefinesTooManySeriesASecondHasToWait) {
  StreamSession session = NewSession();
  Greet(&session);
  ASSERT_TRUE(Send(&session, {LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, Quotas::Limit::kNone);
  ASSERT_TRUE(Send(&session, {LayoutMessage(8), LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, Quotas::Limit::kDefinitions);
  EXPECT_GT(session.wait().length, absl::Seconds(1));
  ASSERT_TRUE(Send(&session, {EventMessage(1)}).ok());
  EXPECT_EQ(session.wait().limit, Quotas::Limit::kNone) << "what follows was not what waits";
}

// The agent would send it for ever if its sequence never became durable.
TEST_F(StreamSessionTest, BatchRefusedToTheLastSampleIsDurableAllTheSame) {
  store_.SetMaxSeriesPerLayout(0);
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), BatchMessage(1)}).ok());
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 1u);
  EXPECT_EQ(ack.rejects_size(), 2);
  EXPECT_EQ(store_.stored()[0].kind, "gap");
}

TEST_F(StreamSessionTest, EventsAndAttributesReachTheStoreWhole) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), EventMessage(1), AttributesMessage(2)}).ok());
  ASSERT_THAT(store_.stored(), SizeIs(2));
  const storage::Event event = store_.stored()[0].event;
  EXPECT_EQ(event.source.job, "vision");
  EXPECT_EQ(event.source.task, std::nullopt);
  EXPECT_EQ(event.step, 12);
  EXPECT_EQ(event.kind, "checkpoint_saved");
  EXPECT_EQ(event.fields.at("path"), "/ckpt/12");
  EXPECT_EQ(store_.stored()[1].attributes.values.at("model"), "resnet");
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 2u);
}

TEST_F(StreamSessionTest, GapMakesWhatIsLostDurable) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), GapMessage(11, 1, 10)}).ok());
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 11u);
  EXPECT_EQ(Counter("tacho_ingest_lost_messages_total"), 10);
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
  EXPECT_EQ(store_.DurableSequences("agent-2", 7).watermark(), 9u);
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
}  // namespace tacho::server

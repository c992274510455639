// What a session refuses, folds and slows down while the stream goes on: rates, limits on series,
// names.
#include <bit>
#include <limits>

#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(StreamSessionTest, PastTheAgentsRateABatchIsTakenAndPaidForWithTime) {
  auto config = SmallQuotas();
  config.set_agent_samples_per_second(10);
  config::v1::Collector collector;
  *collector.mutable_quotas() = config;
  (*quotas_.Prepare(collector))();
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, edge::Quotas::Limit::kNone) << "the burst";
  ASSERT_TRUE(Send(&session, {BatchMessage(1, std::vector<double>(80), 10)}).ok());
  EXPECT_EQ(session.wait().limit, edge::Quotas::Limit::kAgentRate);
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
  EXPECT_EQ(other.wait().limit, edge::Quotas::Limit::kNone);
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
  EXPECT_EQ(first.wait().limit, edge::Quotas::Limit::kJobRate);
  StreamSession second = NewSession(2);
  auto elsewhere = LayoutMessage(1, 2);
  elsewhere.mutable_layout()->mutable_source()->set_job("speech");
  ASSERT_TRUE(Send(&second, {HelloMessage("b"), LayoutMessage(1), elsewhere}).ok());
  ASSERT_TRUE(Send(&second, {BatchMessage(1, {1}, 1, 1)}).ok());
  EXPECT_GT(second.wait().length, first.wait().length);
  ASSERT_TRUE(Send(&second, {BatchMessage(2, {1}, 1, 2)}).ok());
  EXPECT_EQ(second.wait().limit, edge::Quotas::Limit::kNone);
}

TEST_F(StreamSessionTest, ColumnsPastALimitAreDroppedAndReportedByLimit) {
  store_.Limit([](storage::LimitPolicy::Options* limits) {
    limits->totals.series = 2;  // Passed by columns 2 and 4; column 3 passes the job's.
    limits->rules.push_back({.metric = "metric_3", .limits = {.series_per_job = 2}});
  });
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

// The same series under many numbers would be held as often.
TEST_F(StreamSessionTest, LayoutsOfAStreamShareItsColumns) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session,
                   {HelloMessage(), LayoutMessage(8, 1), LayoutMessage(8, 2), LayoutMessage(8, 3)})
                  .ok());
  const absl::Status refused = Send(&session, {LayoutMessage(1, 0)});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ingest.max_columns_per_stream"));
  EXPECT_EQ(Counter("tacho_ingest_messages_refused_total", "too_large"), 1);
  EXPECT_TRUE(Send(&session, {LayoutMessage(7, 1), LayoutMessage(1, 0)}).ok()) << "one is replaced";
}

TEST_F(StreamSessionTest, ReloadedLimitsHoldForTheNextMessage) {
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(2)}).ok());
  config::v1::Collector config;
  *config.mutable_ingest() = SmallLimits();
  config.mutable_ingest()->set_max_rows_per_batch(1);
  config.mutable_ingest()->set_max_message_bytes(1 << 20);
  (*limits_.Prepare(config))();
  EXPECT_EQ(Send(&session, {BatchMessage(1, {1, 2, 3, 4}, 2)}).code(),
            absl::StatusCode::kResourceExhausted);
  StreamSession again = NewSession(2);
  const v1::Welcome welcome = Greet(&again);
  EXPECT_EQ(welcome.limits().max_rows_per_batch(), 1u);
  EXPECT_EQ(welcome.limits().max_message_bytes(), 65536u) << "gRPC still refuses more";
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
  EXPECT_THAT(store_.stored(), IsEmpty());
  EXPECT_THAT(store_.losses(), IsEmpty());
  EXPECT_EQ(acks_->TakeAck().durable_sequence(), 1u);
}

TEST_F(StreamSessionTest, ColumnsBehindAnInvalidSeriesKeepTheirPlace) {
  auto layout = LayoutMessage(4);
  layout.mutable_layout()->mutable_series(1)->mutable_metric()->clear_name();
  // The last of the series that are left is refused for the store's sake.
  store_.Limit([](storage::LimitPolicy::Options* limits) { limits->totals.series = 2; });
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), layout, BatchMessage(1, {1, 2, 3, 4})}).ok());
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_THAT(store_.stored()[0].value_bits, ElementsAre(bits(1), bits(3)));
  EXPECT_EQ(acks_->TakeAck().rejects(0).example(), "metric_3{chip=\"3\"}");
}

TEST_F(StreamSessionTest, FoldedColumnsAreAddedUpRowByRow) {
  // Two chips are known, and no more may be: columns 1, 3 and 4 of one metric are folded.
  StreamSession session = NewSession();
  auto known = LayoutMessage(3);
  known.mutable_layout()->mutable_series()->DeleteSubrange(1, 1);
  ASSERT_TRUE(Send(&session, {HelloMessage(), known}).ok());
  store_.Limit([](storage::LimitPolicy::Options* limits) {
    limits->series.values_per_label = 2;
    limits->series.action = storage::LimitAction::kFold;
  });
  auto layout = LayoutMessage(5);
  for (const int column : {1, 3, 4}) {
    layout.mutable_layout()->mutable_series(column)->mutable_metric()->set_name("folded");
  }
  const double stale = StaleMarker();
  const double odd_nan = std::bit_cast<double>(uint64_t{0x7ff8000000abcdef});
  ASSERT_TRUE(Send(&session, {layout, BatchMessage(1, {1,  10,    2,  20,      30,     //
                                                       -1, stale, -2, 20,      30,     //
                                                       7,  stale, 8,  odd_nan, stale,  //
                                                       9,  stale, 9,  stale,   stale},
                                                   4)})
                  .ok());
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_THAT(store_.stored()[0].value_bits,
              ElementsAre(bits(1), bits(2), bits(60), bits(-1), bits(-2), bits(50), bits(7),
                          bits(8), bits(odd_nan), bits(9), bits(9), kStaleMarkerBits));
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.rejects_size(), 0);
  ASSERT_EQ(ack.folded_size(), 1);
  EXPECT_EQ(ack.folded(0).reason(), v1::Reject::REASON_LABEL_LIMIT);
  EXPECT_EQ(ack.folded(0).samples(), 12u);
  EXPECT_EQ(ack.folded(0).series(), 3u);
  EXPECT_THAT(ack.folded(0).detail(), HasSubstr("limits.values_per_label is 2"));
  EXPECT_EQ(Counter("tacho_ingest_samples_folded_total"), 12);
  EXPECT_EQ(LimitCounter("values_per_label", "fold"), 3);
  const auto top = limiting_.ledger().Top("vision", 10);
  ASSERT_THAT(top, SizeIs(1));
  EXPECT_EQ(top[0].name, "chip");
  EXPECT_EQ(top[0].series, 3u);
}

TEST_F(StreamSessionTest, EventsOfAJobTooManyAreRefusedAndDurable) {
  store_.Limit([](storage::LimitPolicy::Options* limits) { limits->totals.jobs = 0; });
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), EventMessage(1), AttributesMessage(2)}).ok());
  EXPECT_THAT(store_.stored(), IsEmpty());
  EXPECT_THAT(store_->Jobs(), IsEmpty());
  EXPECT_THAT(store_.losses(), IsEmpty());
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 2u);
  EXPECT_EQ(ack.rejects(0).reason(), v1::Reject::REASON_JOBS_LIMIT);
  EXPECT_EQ(ack.rejects(0).samples(), 2u);
  EXPECT_EQ(LimitCounter("jobs", "reject"), 2);
}

// Whoever looks for such a job in vain is to learn why.
TEST_F(StreamSessionTest, WhatIsRefusedIsNotedForItsJobWhateverTheReason) {
  const int64_t day_ns = int64_t{86'400} * 1'000'000'000;
  auto old = BatchMessage(1, {1, 2, 3, 4}, 2);
  for (int row = 0; row < 2; ++row)
    old.mutable_batch()->set_times_unix_ns(row, kNowNs - 3 * day_ns);
  auto old_event = EventMessage(2);
  old_event.mutable_event()->set_time_unix_ns(kNowNs - 3 * day_ns);
  old_event.mutable_event()->mutable_source()->set_job("old");
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), old, old_event}).ok());
  store_.Limit([](storage::LimitPolicy::Options* limits) { limits->totals.jobs = 1; });
  auto layout = LayoutMessage(2, 2);
  layout.mutable_layout()->mutable_source()->set_job("one too many");
  ASSERT_TRUE(Send(&session, {layout, BatchMessage(3, {1, 2}, 1, 2)}).ok());
  const auto of = [this](const std::string& job) {
    std::vector<std::string> texts;
    for (const limits::JobRefusal& one : limiting_.job_refusals().Of(job)) {
      texts.push_back(absl::StrCat(one.reason, " ", one.samples));
      EXPECT_FALSE(one.example.empty());
      EXPECT_FALSE(one.detail.empty());
      EXPECT_EQ(one.last, now_());
    }
    return texts;
  };
  EXPECT_THAT(of("vision"), ElementsAre("too_old 4"));
  EXPECT_THAT(of("old"), ElementsAre("too_old 1"));
  EXPECT_THAT(of("one too many"), ElementsAre("jobs_limit 2"));
}

TEST_F(StreamSessionTest, WhoDefinesTooManySeriesASecondHasToWait) {
  StreamSession session = NewSession();
  Greet(&session);
  ASSERT_TRUE(Send(&session, {LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, edge::Quotas::Limit::kNone);
  ASSERT_TRUE(Send(&session, {LayoutMessage(8), LayoutMessage(8)}).ok());
  EXPECT_EQ(session.wait().limit, edge::Quotas::Limit::kDefinitions);
  EXPECT_GT(session.wait().length, absl::Seconds(1));
  ASSERT_TRUE(Send(&session, {EventMessage(1)}).ok());
  EXPECT_EQ(session.wait().limit, edge::Quotas::Limit::kNone) << "what follows was not what waits";
}

TEST_F(StreamSessionTest, AnAgentThatConnectsAgainHasDefinedWhatItDefinedBefore) {
  {
    StreamSession session = NewSession(1);
    ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(8), LayoutMessage(8)}).ok());
    agents_.Release(1);
  }
  StreamSession again = NewSession(2);
  ASSERT_TRUE(Send(&again, {HelloMessage(), LayoutMessage(8)}).ok());
  EXPECT_EQ(again.wait().limit, edge::Quotas::Limit::kDefinitions);
  EXPECT_GT(again.wait().length, absl::Milliseconds(1200)) << "24 at 10 a second, 10 at once";
  StreamSession other = NewSession(3);
  ASSERT_TRUE(Send(&other, {HelloMessage("agent-2"), LayoutMessage(8)}).ok());
  EXPECT_EQ(other.wait().limit, edge::Quotas::Limit::kNone);
}

// The agent would send it for ever if its sequence never became durable.
TEST_F(StreamSessionTest, BatchRefusedToTheLastSampleIsDurableAllTheSame) {
  store_.Limit([](storage::LimitPolicy::Options* limits) {
    limits->totals.series = 0;
    limits->rules.push_back({.metric = "metric_1", .limits = {.series_per_job = 0}});
  });
  StreamSession session = NewSession();
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), BatchMessage(1)}).ok());
  const v1::Ack ack = acks_->TakeAck();
  EXPECT_EQ(ack.durable_sequence(), 1u);
  EXPECT_EQ(ack.rejects_size(), 2);
  EXPECT_THAT(store_.stored(), IsEmpty());
  EXPECT_THAT(store_.losses(), IsEmpty());
}

}  // namespace
}  // namespace tacho::server::ingest

// The parts of the stream that need no connection.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_losses.h"
#include "agent/stream/acknowledged.h"
#include "agent/stream/clock_reports.h"
#include "agent/stream/lanes.h"
#include "agent/stream/pace.h"
#include "agent/stream/refused_totals.h"
#include "agent/stream/stream_layouts.h"
#include "agent/stream/stream_memory.h"
#include "client/channel/backoff.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "proto/rpc/retry_delay.h"

namespace tacho::agent {
namespace {

using client::Backoff;

using Ranges = google::protobuf::RepeatedPtrField<v1::SequenceRange>;

Ranges Range(uint64_t first, uint64_t last) {
  Ranges ranges;
  ranges.Add()->set_first(first);
  ranges.rbegin()->set_last(last);
  return ranges;
}

TEST(BackoffTest, PausesDoubleUpToTheMaximum) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(5), [] { return 0.0; });
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(500));
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
  EXPECT_EQ(backoff.Next(), absl::Seconds(2));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(2500));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(backoff.Next(), absl::Milliseconds(2500));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(500));
}

TEST(BackoffTest, JitterIsBetweenHalfAndAllOfTheBound) {
  for (const double random : {0.0, 0.25, 0.999}) {
    Backoff backoff(absl::Seconds(1), absl::Seconds(8), [random] { return random; });
    for (const int bound : {1, 2, 4, 8, 8}) {
      EXPECT_EQ(backoff.Next(), absl::Seconds(bound) * (0.5 + random / 2)) << random;
    }
  }
}

TEST(BackoffTest, WaitsAtLeastAsLongAsThePeerAsks) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(1), [] { return 0.5; });
  EXPECT_EQ(backoff.Next(absl::Seconds(20)), absl::Seconds(25));
  EXPECT_EQ(backoff.Next(absl::ZeroDuration()), absl::Milliseconds(750));
  EXPECT_EQ(backoff.Next(absl::Seconds(-5)), absl::Milliseconds(750));
  EXPECT_EQ(backoff.Next(absl::InfiniteDuration()), Backoff::kMaxRetryAfter * 1.25);
}

TEST(RetryInfoTest, DelayIsFoundAmongOtherDetails) {
  google::rpc::Status rich;
  rich.add_details()->PackFrom(google::rpc::BadRequest());
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(3);
  info.mutable_retry_delay()->set_nanos(500'000'000);
  rich.add_details()->PackFrom(info);
  const grpc::Status status(grpc::StatusCode::UNAVAILABLE, "busy", rich.SerializeAsString());
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(3500));
}

TEST(RetryInfoTest, BytesThatAreNoStatusAreNoDelay) {
  EXPECT_EQ(RetryDelay(grpc::Status(grpc::StatusCode::UNAVAILABLE, "")), std::nullopt);
  EXPECT_EQ(RetryDelay(grpc::Status(grpc::StatusCode::UNAVAILABLE, "", "\xff\xff\xff")),
            std::nullopt);
}

TEST(SendWindowTest, CountsWhatIsNotDurable) {
  SendWindow window;
  for (uint64_t i = 1; i <= 5; ++i) window.Sent(i, 10);
  window.Durable(2, {});
  EXPECT_EQ(window.messages(), 3u);
  window.Durable(2, Range(4, 9));
  EXPECT_EQ(window.messages(), 1u);
  EXPECT_EQ(window.bytes(), 10u);
  window.Durable(2, Range(4, 9));
  EXPECT_EQ(window.messages(), 1u) << "once each";
  window.Durable(5, {});
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.bytes(), 0u);
}

TEST(SendWindowTest, IsFullByBytesAndByMessages) {
  SendWindow window;
  window.Sent(1, SendWindow::kMaxBytes - 1);
  EXPECT_TRUE(window.HasRoom());
  window.Sent(2, 1);
  EXPECT_FALSE(window.HasRoom());
  window.Durable(1, {});
  EXPECT_TRUE(window.HasRoom());
  for (uint64_t i = 0; i + 1 < SendWindow::kMaxMessages; ++i) window.Sent(3 + i, 1);
  EXPECT_FALSE(window.HasRoom());
}

TEST(StreamLayoutsTest, DefinesEachOnceAndReusesTheLongestUnusedId) {
  StreamLayouts layouts(2);
  EXPECT_TRUE(layouts.Find(70).define);
  EXPECT_TRUE(layouts.Find(71).define);
  EXPECT_FALSE(layouts.Find(70).define);
  const StreamLayouts::Use third = layouts.Find(72);  // In place of 71.
  EXPECT_TRUE(third.define);
  EXPECT_LT(third.id, 2u);
  EXPECT_FALSE(layouts.Find(70).define);
  EXPECT_TRUE(layouts.Find(71).define);
}

TEST(StreamLayoutsTest, ForgottenLayoutIsDefinedAgainWithinTheBound) {
  StreamLayouts layouts(1);
  layouts.Find(1);
  layouts.Forget(1);
  layouts.Forget(1);
  const StreamLayouts::Use use = layouts.Find(2);
  EXPECT_TRUE(use.define);
  EXPECT_EQ(use.id, 0u);
  EXPECT_EQ(layouts.Find(3).id, 0u);
}

TEST(SendRateTest, RowsCostTimeWhileALimitHolds) {
  SendRate rate;
  const absl::Time now = absl::UnixEpoch();
  rate.Sent(1000, now);
  EXPECT_LE(rate.next(), now) << "no limit";
  rate.Limit(100, now);
  rate.Sent(50, now);
  EXPECT_EQ(rate.next(), now + absl::Milliseconds(500));
  rate.Sent(50, now);
  EXPECT_EQ(rate.next(), now + absl::Seconds(1));
  rate.PauseFor(absl::Hours(100), now);
  EXPECT_EQ(rate.next(), now + SendRate::kMaxPause);
}

TEST(SendRateTest, LiftedOrRaisedLimitHoldsNothingBack) {
  SendRate rate;
  const absl::Time now = absl::UnixEpoch();
  rate.Limit(1, now);
  rate.Sent(4096, now);
  EXPECT_EQ(rate.next(), now + SendRate::kMaxPause) << "one message is no hour's silence";
  rate.Limit(10, now);
  EXPECT_EQ(rate.next(), now + SendRate::kMaxPause / 10);
  rate.PauseFor(absl::Seconds(1), now);
  rate.Limit(0, now);
  EXPECT_EQ(rate.next(), now + absl::Seconds(1)) << "the pause stays";
}

TEST(ClockOffsetTest, MiddleOfTheExchangeIsWhenTheOtherClockWasRead) {
  ClockOffset clock;
  const absl::Time t = absl::FromUnixSeconds(100);
  EXPECT_FALSE(clock.estimate().has_value());
  clock.Exchanged(t, t + absl::Seconds(2), t + absl::Seconds(11));
  EXPECT_EQ(clock.estimate()->ahead, -absl::Seconds(10));
  EXPECT_EQ(clock.estimate()->uncertainty, absl::Seconds(1));
  clock.Exchanged(t, t - absl::Hours(1), t);
  EXPECT_EQ(clock.estimate()->ahead, -absl::Seconds(10)) << "ours was set back";
  v1::ClockEstimate told;
  told.set_ahead_ns(-3'000'000);
  told.set_uncertainty_ns(1'000);
  clock.Told(told);
  EXPECT_EQ(clock.estimate()->ahead, -absl::Milliseconds(3));
  EXPECT_EQ(clock.estimate()->uncertainty, absl::Microseconds(1));
}

TEST(ClockReportsTest, AnswersEachMarkOnceAndAtMostOnceASecond) {
  ClockReports reports;
  const absl::Time t = absl::FromUnixSeconds(100);
  const absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  EXPECT_FALSE(reports.IsDue(t)) << "a collector that takes none gives no mark";
  reports.Marked(7, t);
  ASSERT_TRUE(reports.IsDue(t + absl::Milliseconds(20)));
  const v1::ClockReport report = reports.Take(t + absl::Milliseconds(20), wall);
  EXPECT_EQ(report.mark(), 7u);
  EXPECT_EQ(report.held_ns(), 20'000'000u);
  EXPECT_EQ(report.clock_unix_ns(), absl::ToUnixNanos(wall));
  EXPECT_FALSE(reports.IsDue(t + absl::Hours(1)));
  reports.Marked(8, t + absl::Milliseconds(30));
  EXPECT_FALSE(reports.IsDue(t + absl::Milliseconds(1019)));
  EXPECT_TRUE(reports.IsDue(t + absl::Milliseconds(1020)));
}

TEST(ClockReportsTest, TheLongestReportFitsWhatIsLeftForIt) {
  v1::ClientMessage message;
  message.mutable_clock()->set_mark(UINT64_MAX);
  message.mutable_clock()->set_held_ns(UINT64_MAX);
  message.mutable_clock()->set_clock_unix_ns(INT64_MIN);
  EXPECT_LE(message.ByteSizeLong(), ClockReports::kMaxBytes);
}

TEST(SuspicionTest, FindsTheMessageThatIsAloneWhenTheStreamIsRefused) {
  Suspicion suspicion;
  EXPECT_FALSE(suspicion.Refused({.sequence = 20}, false, {20, 0}));
  EXPECT_TRUE(suspicion.OneAtATime());
  suspicion.Passed({.sequence = 5});
  EXPECT_TRUE(suspicion.OneAtATime());
  EXPECT_TRUE(suspicion.Refused({.sequence = 6}, true, {6, 0}));
  EXPECT_TRUE(suspicion.OneAtATime()) << "others may be at fault as well";
  suspicion.Passed({.sequence = 20});
  EXPECT_FALSE(suspicion.OneAtATime());
}

TEST(SuspicionTest, LayoutIsHopelessAfterSomeBatchesInARow) {
  Suspicion suspicion;
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_FALSE(suspicion.IsHopeless(7));
    suspicion.Refused({.sequence = i, .layout = 7}, false, {i, 0});
    suspicion.Refused({.sequence = i, .layout = 7}, true, {i, 0});
  }
  EXPECT_TRUE(suspicion.IsHopeless(7));
  EXPECT_FALSE(suspicion.IsHopeless(0));
  suspicion.Passed({.sequence = 4, .layout = 7});
  EXPECT_FALSE(suspicion.IsHopeless(7));
}

TEST(DeniedJobsTest, JobsAreTriedAgainWhenRightsMayHaveChanged) {
  const absl::Time t = absl::UnixEpoch();
  DeniedJobs denied;
  denied.StreamEnded();  // Before anything was refused: says nothing of it.
  denied.Deny("speech", "not yours", t);
  ASSERT_NE(denied.Find("speech", t + DeniedJobs::kAfterStream), nullptr);
  EXPECT_EQ(*denied.Find("speech", t), "not yours");
  EXPECT_EQ(denied.Find("vision", t), nullptr);
  denied.StreamEnded();
  EXPECT_NE(denied.Find("speech", t + absl::Seconds(1)), nullptr) << "not at every cut";
  EXPECT_EQ(denied.Find("speech", t + DeniedJobs::kAfterStream), nullptr);
  EXPECT_TRUE(denied.empty());
}

TEST(DeniedJobsTest, JobsAreTriedAgainNowAndThen) {
  const absl::Time t = absl::UnixEpoch();
  DeniedJobs denied;
  denied.Deny("speech", "not yours", t);
  EXPECT_NE(denied.Find("speech", t + DeniedJobs::kAnyway - absl::Seconds(1)), nullptr);
  EXPECT_EQ(denied.Find("speech", t + DeniedJobs::kAnyway), nullptr);
}

TEST(DeniedJobsTest, WhatTrainersNameTakesBoundedMemory) {
  DeniedJobs denied;
  for (int i = 0; i < 5000; ++i) denied.Deny(absl::StrCat(i), "not yours", absl::UnixEpoch());
  size_t known = 0;
  for (int i = 0; i < 5000; ++i) {
    if (denied.Find(absl::StrCat(i), absl::UnixEpoch()) != nullptr) ++known;
  }
  EXPECT_GT(known, 0u);
  EXPECT_LE(known, DeniedJobs::kMaxJobs);
}

TEST(LossReportTest, AddsUpAndKeepsBoundedReasons) {
  LossReport report;
  const absl::Time t = absl::UnixEpoch();
  int lines = 0;
  for (int i = 0; i < 1000; ++i) {
    if (report.Add(1, 1, absl::StrCat("reason ", i), t)) ++lines;
  }
  EXPECT_LE(lines, int{LossReport::kMaxReasons} + 1);
  EXPECT_EQ(report.Add(9, 5, "reason 0", t + absl::Seconds(59)), std::nullopt);
  EXPECT_EQ(report.Add(10, 5, "reason 0", t + absl::Seconds(60)),
            "gave up 2 spooled messages with 10 rows, the last of them message 10: reason 0");
}

TEST(RefusalReportTest, SaysOnceAMinuteWhatAddedUpMeanwhile) {
  RefusalReport report;
  std::vector<std::string> said;
  const auto add = [&](uint64_t samples, bool folded, absl::Duration after) {
    v1::Ack ack;
    v1::Reject* reject = folded ? ack.add_folded() : ack.add_rejects();
    reject->set_reason(v1::Reject::REASON_LABEL_LIMIT);
    reject->set_samples(samples);
    reject->set_series(1);
    reject->set_example("loss{id=\"7\"}");
    reject->set_detail("limits.values_per_label is 5; drop the label");
    report.Add(ack, absl::UnixEpoch() + after,
               [&](const std::string& line) { said.push_back(line); });
  };
  add(10, false, absl::ZeroDuration());
  add(20, false, absl::Seconds(30));
  add(5, true, absl::Seconds(31));
  add(30, false, absl::Seconds(60));
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0],
            "the collector refused 10 samples and 1 new series: REASON_LABEL_LIMIT, as of "
            "loss{id=\"7\"}: limits.values_per_label is 5; drop the label");
  EXPECT_NE(said[1].find("added up in overflow series 5 samples"), std::string::npos);
  EXPECT_NE(said[2].find("refused 50 samples and 2 new series (60 samples since the start)"),
            std::string::npos)
      << said[2];
}

// What is refused within a minute of a line, and then no more, is in a line all the same.
TEST(RefusalReportTest, SaysTheRestThatNoRefusalFollows) {
  RefusalReport report;
  std::vector<std::string> said;
  const auto add = [&](const v1::Ack& ack, absl::Duration after) {
    report.Add(ack, absl::UnixEpoch() + after,
               [&](const std::string& line) { said.push_back(line); });
  };
  v1::Ack refusal;
  refusal.add_rejects()->set_reason(v1::Reject::REASON_TOO_OLD);
  refusal.mutable_rejects(0)->set_samples(3149);
  add(refusal, absl::ZeroDuration());
  refusal.mutable_rejects(0)->set_samples(110'979);
  add(refusal, absl::Seconds(1));
  add({}, absl::Seconds(59));
  ASSERT_EQ(said.size(), 1u);
  add({}, absl::Seconds(61));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[1].find("refused 110979 samples (114128 samples since the start)"),
            std::string::npos)
      << said[1];
  add({}, absl::Minutes(5));
  EXPECT_EQ(said.size(), 2u) << "once";
}

TEST(AcknowledgedTest, WhatIsMissingIsInTheSpoolOrGone) {
  Acknowledged acknowledged;
  v1::Welcome welcome;
  welcome.set_durable_sequence(10);
  EXPECT_EQ(acknowledged.Compare(welcome, 11).all(), 0u) << "nothing is known";
  acknowledged.Raise(30);
  acknowledged.Raise(25);
  EXPECT_EQ(acknowledged.highest(), 30u);

  welcome.set_durable_sequence(12);
  *welcome.mutable_durable_ahead() = Range(15, 16);
  welcome.add_durable_ahead()->set_first(28);
  welcome.mutable_durable_ahead(1)->set_last(40);
  const MissingMessages missing = acknowledged.Compare(welcome, 20);
  EXPECT_EQ(missing.gone, 5u) << "13, 14, 17 to 19";
  EXPECT_EQ(missing.again, 8u) << "20 to 27";
  EXPECT_EQ(acknowledged.Compare(welcome, 20).all(), 0u) << "once";
}

TEST(AcknowledgedTest, EveryStreamNotesAtMostOnceASecondAndAtItsEnd) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/acknowledged_test_", getpid());
  const absl::Cleanup remove = [&] { std::filesystem::remove_all(path); };  // After the spool.
  const auto spool = Spool::Open({.path = path});
  ASSERT_TRUE(spool.ok()) << spool.status();
  Acknowledged acknowledged;
  acknowledged.Load(**spool, "host-0", "collector:7411");
  const auto noted = [&] { return (*spool)->ReadCheckpoint("acknowledged/host-0@collector:7411"); };
  const absl::Time now = absl::UnixEpoch();

  acknowledged.Raise(1);
  acknowledged.Note(now, spool->get());
  EXPECT_EQ(noted(), "1");
  acknowledged.Raise(2);
  acknowledged.Note(now + absl::Milliseconds(999), spool->get());
  EXPECT_EQ(noted(), "1") << "within the second";
  acknowledged.Note(absl::InfiniteFuture(), spool->get());
  EXPECT_EQ(noted(), "2") << "the stream's end";
  acknowledged.Raise(3);
  acknowledged.Note(now + absl::Seconds(1), spool->get());
  EXPECT_EQ(noted(), "3") << "the next stream";
}

TEST(RefusedTotalsTest, AddUpByReason) {
  RefusedTotals totals;
  v1::Ack ack;
  ack.add_rejects()->set_reason(v1::Reject::REASON_TOO_OLD);
  ack.mutable_rejects(0)->set_samples(7);
  ack.add_rejects()->set_reason(v1::Reject::REASON_SERIES_LIMIT);
  ack.mutable_rejects(1)->set_samples(1);
  ack.add_folded()->set_samples(100);
  totals.Add(ack);
  totals.Add(ack);
  const std::map<std::string, uint64_t> expected = {{"series_limit", 2}, {"too_old", 14}};
  EXPECT_EQ(totals.samples(), expected);
}

v1::ClientMessage BatchOf(int rows) {
  v1::ClientMessage message;
  message.mutable_batch()->set_sequence(1);
  message.mutable_batch()->set_layout(1);
  for (int i = 0; i < rows; ++i) message.mutable_batch()->add_times_unix_ns(1);
  return message;
}

v1::ClientMessage GapOf(uint64_t first, uint64_t last, uint64_t rows) {
  v1::ClientMessage message;
  message.mutable_gap()->mutable_lost()->set_first(first);
  message.mutable_gap()->mutable_lost()->set_last(last);
  message.mutable_gap()->set_rows(rows);
  return message;
}

SpooledMessage Spooled(const v1::ClientMessage& message) {
  return SpooledMessage::Of(message.SerializeAsString()).value();
}

TEST(SpoolLossesTest, GapThatJoinsOnIsTakenIn) {
  SpoolLosses losses;
  losses.Add(101, Spooled(BatchOf(3)));
  losses.Add(102, Spooled(GapOf(1, 100, 50)));
  losses.AddUncounted(103);
  const auto gaps = losses.Gaps("full");
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].gap().lost().first(), 1u);
  EXPECT_EQ(gaps[0].gap().lost().last(), 103u);
  EXPECT_EQ(gaps[0].gap().rows(), 53u);
  EXPECT_EQ(losses.rows(), 3u);
  EXPECT_EQ(losses.entries(), 3u);
}

TEST(SpoolLossesTest, GapElsewhereIsRepeated) {
  SpoolLosses losses;
  losses.Add(101, Spooled(GapOf(50, 50, 1)));
  const auto gaps = losses.Gaps("full");
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].gap().lost().last(), 50u);
  EXPECT_EQ(gaps[1].gap().lost().first(), 101u);
  EXPECT_TRUE(SpoolLosses().Gaps("full").empty());
}

}  // namespace
}  // namespace tacho::agent

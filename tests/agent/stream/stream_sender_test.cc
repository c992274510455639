// The sender against a scripted collector on loopback: streams are cut and acknowledgements
// delayed; what the collector calls durable is compared with what was spooled.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/random/random.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "proto/base/clock.h"
#include "tests/agent/stream/sender_fixture.h"

namespace tacho::agent {
namespace {

TEST_F(SenderTest, FirstRowsOfSourcesDoNotWaitForAWholeSyncInterval) {
  sync_interval_ = absl::Hours(1);
  StartSender(collector_.address());
  for (int i = 0; i < 3; ++i) {
    Append(i, i);
    ASSERT_TRUE(WaitForEmptySpool()) << i;
  }
}

TEST_F(SenderTest, DeliversWhatIsSpooledAndTrimsIt) {
  Append(1, 5, "a");
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(5)) << log();
  Append(6, 10, "b");
  ASSERT_TRUE(collector_.WaitForDurable(10)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  sender_->Stop(absl::Seconds(5));

  const v1::Hello hello = collector_.hellos().at(0);
  EXPECT_EQ(hello.agent_id(), "agent-7");
  EXPECT_EQ(hello.spool_generation(), spool_->generation());
  EXPECT_EQ(hello.first_sequence(), 1u);
  EXPECT_EQ(hello.identity(0).value(), "z1");
  EXPECT_EQ(collector_.hellos().size(), 1u);
  EXPECT_EQ(collector_.undefined_layouts(), 0);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(collector_.values().at(static_cast<uint64_t>(i)), i);
}

TEST_F(SenderTest, TokenFileThatIsNotThereIsLookedForAgainSoon) {
  security_ = {.token_file = path_ + ".token", .allow_plaintext_token = true};
  Append(1, 1);
  const absl::Time start = MonotonicNow();
  StartSender(collector_.address());
  ASSERT_TRUE(WaitForLog("FAILED_PRECONDITION"));
  EXPECT_LT(MonotonicNow() - start, absl::Seconds(10)) << "it waited for an answer";
  std::ofstream(security_.token_file) << "token-of-this-test-0123456789abcdef\n";
  std::filesystem::permissions(security_.token_file, std::filesystem::perms::owner_read);
  EXPECT_TRUE(collector_.WaitForDurable(1)) << log();
  std::filesystem::remove(security_.token_file);
}

// At least once, in order within each stream, whatever is cut and however acknowledgements lag.
TEST_F(SenderTest, EverythingArrivesOverManyCutStreams) {
  absl::BitGen random;
  absl::Mutex mutex;
  collector_.ack_every = 7;
  collector_.judge = [&](const v1::ClientMessage&) {
    absl::MutexLock lock(&mutex);
    if (absl::Bernoulli(random, 0.02)) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
    }
    return grpc::Status::OK;
  };
  StartSender(collector_.address());
  for (int i = 0; i < 20; ++i) {
    Append(i * 50 + 1, i * 50 + 50, absl::StrCat("job-", i % 3));
    absl::SleepFor(absl::Milliseconds(5));
  }
  ASSERT_TRUE(collector_.WaitForDurable(1000)) << log();
  EXPECT_GT(collector_.streams().size(), 3u);
  EXPECT_EQ(collector_.undefined_layouts(), 0);
  for (const auto& stream : collector_.streams()) {
    EXPECT_TRUE(std::is_sorted(stream.begin(), stream.end()));
  }
  const auto values = collector_.values();
  ASSERT_EQ(values.size(), 1000u);
  for (const auto& [sequence, value] : values) EXPECT_EQ(value, static_cast<double>(sequence));
}

// Backlogs begin and end all the time here: the order of lanes changes nothing in what arrives.
TEST_F(SenderTest, EverythingArrivesInTwoLanesOverManyCutStreams) {
  absl::BitGen random;
  absl::Mutex mutex;
  short_backlog_ = 3;
  collector_.ack_every = 3;
  collector_.judge = [&](const v1::ClientMessage&) {
    absl::MutexLock lock(&mutex);
    if (absl::Bernoulli(random, 0.04)) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
    }
    return grpc::Status::OK;
  };
  StartSender(collector_.address());
  for (int i = 0; i < 40; ++i) {
    Append(i * 25 + 1, i * 25 + 24, absl::StrCat("job-", i % 3));
    v1::Attributes attributes;
    (*attributes.mutable_values())["batch"] = absl::StrCat(i);
    ASSERT_TRUE(spool_->AppendAttributes(attributes, {}).ok());
    absl::SleepFor(absl::Milliseconds(3));
  }
  ASSERT_TRUE(collector_.WaitForDurable(1000)) << log();
  EXPECT_EQ(collector_.undefined_layouts(), 0);
  EXPECT_EQ(collector_.values().size(), 40u * 24);
  EXPECT_EQ(collector_.attributes()["batch"], "39") << "attributes keep their order";
  EXPECT_LE(collector_.most_ranges(), Lanes::kMaxAhead + int{Lanes::kMaxDeferred});
  for (const auto& stream : collector_.streams()) {
    // In at most two rising sequences.
    uint64_t fresh = 0;
    uint64_t backlog = 0;
    for (const uint64_t sequence : stream) {
      uint64_t& lane = sequence > fresh ? fresh : backlog;
      EXPECT_GT(sequence, lane);
      lane = sequence;
    }
  }
}

TEST_F(SenderTest, WhatIsRecordedNowGoesBeforeTheBacklog) {
  short_backlog_ = 10;
  Append(1, 500);
  absl::Notification welcomed;
  collector_.judge = [&](const v1::ClientMessage&) {
    if (!welcomed.HasBeenNotified()) welcomed.Notify();
    return grpc::Status::OK;
  };
  ASSERT_TRUE(spool_->Sync().ok());
  StartSender(collector_.address());
  ASSERT_TRUE(welcomed.WaitForNotificationWithTimeout(absl::Seconds(20))) << log();
  Append(501, 502);
  ASSERT_TRUE(collector_.WaitForDurable(502)) << log();
  const auto stream = collector_.streams().at(0);
  const auto fresh = std::find(stream.begin(), stream.end(), 501u) - stream.begin();
  EXPECT_LT(fresh, 500) << "among the backlog, not behind it";
  EXPECT_TRUE(WaitForEmptySpool());
}

TEST_F(SenderTest, NextCollectorTakesOverAndTheFirstOneGetsItsAgentBack) {
  FakeCollector second;
  collector_.Stop();
  return_after_ = absl::Milliseconds(50);
  Append(1, 20);
  StartSender(std::vector{collector_.address(), second.address()});
  ASSERT_TRUE(second.WaitForDurable(20)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_TRUE(second.hellos().at(0).several_collectors());

  collector_.Start();
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (collector_.hellos().empty() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
  Append(21, 30);
  ASSERT_TRUE(collector_.WaitForDurable(30)) << log();
  EXPECT_EQ(collector_.hellos().at(0).first_sequence(), 21u) << "the second has the others";
  EXPECT_EQ(collector_.values().size(), 10u);
  EXPECT_EQ(second.values().size(), 20u) << "ended in good order: nothing is sent to both";
}

TEST_F(SenderTest, CollectorThatWorksIsKeptThoughAnotherIsThere) {
  FakeCollector second;
  absl::Mutex mutex;
  int cuts = 0;
  collector_.judge = [&](const v1::ClientMessage&) {
    absl::MutexLock lock(&mutex);
    return ++cuts % 7 == 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut") : grpc::Status::OK;
  };
  StartSender(std::vector{collector_.address(), second.address()});
  Append(1, 60);
  ASSERT_TRUE(collector_.WaitForDurable(60)) << log();
  EXPECT_TRUE(second.hellos().empty());
}

TEST_F(SenderTest, SaysItsTimeBesideTheNextMessageToACollectorThatTakesIt) {
  collector_.welcome.set_clock_mark(17);
  Append(1, 1);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(1));
  const std::vector<v1::ClockReport> clocks = collector_.clocks();
  ASSERT_EQ(clocks.size(), 1u);
  EXPECT_EQ(clocks[0].mark(), 17u);
  EXPECT_LT(clocks[0].held_ns(), 20'000'000'000u);
  const absl::Time said = absl::FromUnixNanos(clocks[0].clock_unix_ns());
  EXPECT_LT(absl::AbsDuration(absl::Now() - said), absl::Minutes(1));
  EXPECT_EQ(collector_.values().at(1), 1) << "the message is whole";
}

TEST_F(SenderTest, SaysNothingOfItsClockToACollectorThatDoesNotAsk) {
  Append(1, 3);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(3));
  EXPECT_TRUE(collector_.clocks().empty());
}

TEST_F(SenderTest, ThrottleHoldsForTheCollectorThatAskedForIt) {
  FakeCollector second;
  collector_.throttle.set_pause_ms(600'000);
  collector_.throttle.set_reason("busy");
  StartSender(std::vector{collector_.address(), second.address()});
  ASSERT_TRUE(WaitForLog("busy"));
  Append(1, 10);
  EXPECT_TRUE(collector_.values().empty());
  collector_.Stop();
  ASSERT_TRUE(second.WaitForDurable(10)) << log();
  EXPECT_TRUE(collector_.values().empty());
}

TEST_F(SenderTest, ThrottleOfAStreamThatEndedHoldsNothingBack) {
  collector_.throttle.set_max_rows_per_second(1);
  collector_.throttle.set_reason("busy");
  StartSender(collector_.address());
  ASSERT_TRUE(WaitForLog("busy"));
  collector_.Stop();
  collector_.throttle.Clear();
  collector_.Start();
  Append(1, 100);  // At a row a second longer than the test waits.
  EXPECT_TRUE(collector_.WaitForDurable(100)) << log();
}

TEST_F(SenderTest, NothingIsTrimmedBeforeItIsDurable) {
  collector_.ack_every = 1'000'000;
  Append(1, 100);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(100)) << "taken, but never acknowledged";
  sender_->Stop(absl::ZeroDuration());
  EXPECT_EQ(spool_->begin(), 1u);
  OpenSpool();
  EXPECT_EQ(spool_->begin(), 1u);
  StartSender(collector_.address());
  EXPECT_TRUE(WaitForEmptySpool()) << "the Welcome of the next stream says so";
}

TEST_F(SenderTest, CollectorThatHasLostWhatItAcknowledgedIsReported) {
  Append(1, 10);
  StartSender(collector_.address());
  ASSERT_TRUE(WaitForEmptySpool());
  collector_.Stop();
  collector_.ForgetAfter(4);
  collector_.Start();
  Append(11, 12);
  ASSERT_TRUE(WaitForLog("the collector no longer has what it had acknowledged")) << log();
  EXPECT_TRUE(absl::StrContains(log(), "gone=6")) << log();
  EXPECT_EQ(missing_->Get().gone, 6u);
  EXPECT_EQ(missing_->Get().again, 0u);
  EXPECT_EQ(collector_.hellos().back().acknowledged_sequence(), 10u);
  EXPECT_TRUE(collector_.WaitForDurable(12)) << "all else goes on";
}

TEST_F(SenderTest, WhatWasAcknowledgedIsKnownAfterARestartOfTheAgent) {
  Append(1, 10);
  StartSender(collector_.address());
  ASSERT_TRUE(WaitForEmptySpool());
  sender_.reset();
  OpenSpool();
  StartSender(collector_.address());
  Append(11, 12);
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.hellos().back().acknowledged_sequence(), 10u);
  EXPECT_EQ(missing_->Get().all(), 0u) << "nothing is missing";
  sender_.reset();
  collector_.ForgetAfter(3);
  OpenSpool();
  for (const char* when : {"found", "reported once"}) {
    ClearLog();
    StartSender(collector_.address());
    ASSERT_TRUE(WaitForLog("connected to the collector"));
    sender_.reset();
    EXPECT_EQ(missing_->Get().gone, 9u) << when << log();
  }
}

TEST_F(SenderTest, AcknowledgementOfWhatWasNeverSentIsNotBelieved) {
  Append(1, 3);
  collector_.welcome.set_durable_sequence(50);
  StartSender(collector_.address());
  EXPECT_TRUE(WaitForLog("old copy")) << log();
  sender_->Stop(absl::ZeroDuration());
  EXPECT_EQ(spool_->begin(), 1u);
}

TEST_F(SenderTest, LayoutsBeyondTheCollectorsLimitShareIds) {
  collector_.welcome.mutable_limits()->set_max_layouts(2);
  for (int i = 0; i < 10; ++i) Append(i * 2 + 1, i * 2 + 2, absl::StrCat("job-", i % 5));
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(20)) << log();
  EXPECT_EQ(collector_.undefined_layouts(), 0);
}

TEST_F(SenderTest, StopSyncsAndDeliversTheLastRows) {
  StartSender(collector_.address());
  Append(1, 50);
  sender_->Stop(absl::Seconds(10));
  EXPECT_EQ(collector_.durable(), 50u);
  EXPECT_EQ(spool_->begin(), 51u);
}

TEST_F(SenderTest, StopReturnsSoonIfTheCollectorIsOutOfReach) {
  backoff_min_ = backoff_max_ = absl::Minutes(1);
  StartSender("127.0.0.1:1");
  Append(1, 5);
  ASSERT_TRUE(WaitForLog("connecting again in")) << "now it waits for the next attempt";
  const absl::Time begin = absl::Now();
  sender_->Stop(absl::Seconds(30));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(spool_->begin(), 1u);
  EXPECT_EQ(spool_->synced_end(), 6u);
}

}  // namespace
}  // namespace tacho::agent

// The sender against a scripted collector on loopback: streams are cut, messages refused, and
// acknowledgements delayed; what the collector calls durable is compared with what was spooled.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "agent/stream/sender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/fake_collector.h"

namespace tacho::agent {
namespace {

class SenderTest : public ::testing::Test {
 protected:
  SenderTest()
      : path_(absl::StrCat(::testing::TempDir(), "/sender_test_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    OpenSpool();
  }
  ~SenderTest() override {
    sender_.reset();
    spool_.reset();
    std::filesystem::remove_all(path_);
  }

  void OpenSpool() {
    spool_.reset();
    auto spool = Spool::Open({.path = path_});
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  void StartSender(const std::string& address) { StartSender(std::vector{address}); }

  void StartSender(const std::vector<std::string>& addresses) {
    StreamOptions options;
    options.addresses = addresses;
    options.return_after = return_after_;
    options.lanes.short_backlog = short_backlog_;
    options.agent_id = "agent-7";
    options.labels = {{"zone", "z1"}};
    options.version = "test";
    options.backoff_min = backoff_min_;
    options.backoff_max = backoff_max_;
    options.sync_interval = absl::Milliseconds(1);
    options.log = [this](LogLevel, absl::string_view line) {
      absl::MutexLock lock(&log_mutex_);
      absl::StrAppend(&log_, line, "\n");
    };
    sender_ = std::make_unique<Sender>(options, spool_.get());
    sender_->Start();
  }

  bool WaitForLog(const std::string& text) {
    const auto said = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(log_mutex_) {
      return absl::StrContains(log_, text);
    };
    absl::MutexLock lock(&log_mutex_);
    return log_mutex_.AwaitWithTimeout(absl::Condition(&said), absl::Seconds(20));
  }
  std::string log() {
    absl::MutexLock lock(&log_mutex_);
    return log_;
  }

  // Spools rows with the values first..last.
  void Append(int first, int last, const std::string& job = "job") {
    v1::Layout layout;
    layout.mutable_source()->set_job(job);
    layout.add_series()->mutable_metric()->set_name("m");
    const auto id = spool_->DefineLayout(layout);
    ASSERT_TRUE(id.ok());
    for (int i = first; i <= last; ++i) {
      const int64_t time = i;
      const double value = i;
      ASSERT_TRUE(spool_->AppendRows(*id, {&time, 1}, {}, {&value, 1}, {}).ok());
    }
  }

  bool WaitForEmptySpool() {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (spool_->begin() != spool_->end() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    return spool_->begin() == spool_->end();
  }

  const std::string path_;
  absl::Duration backoff_min_ = absl::Milliseconds(5);
  absl::Duration backoff_max_ = absl::Milliseconds(20);
  absl::Duration return_after_ = absl::Hours(1);
  uint64_t short_backlog_ = 1'000'000;  // One lane.
  absl::Mutex log_mutex_;
  std::string log_ ABSL_GUARDED_BY(log_mutex_);
  FakeCollector collector_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Sender> sender_;
};

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

TEST_F(SenderTest, AcknowledgementOfWhatWasNeverSentIsNotBelieved) {
  Append(1, 3);
  collector_.welcome.set_durable_sequence(50);
  StartSender(collector_.address());
  EXPECT_TRUE(WaitForLog("old copy")) << log();
  sender_->Stop(absl::ZeroDuration());
  EXPECT_EQ(spool_->begin(), 1u);
}

TEST_F(SenderTest, RefusedMessageIsGivenUpWithAGapAndTheRestArrives) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) == 42) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "batch.values: poison");
    }
    return grpc::Status::OK;
  };
  Append(1, 100);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(100)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 99u);
  const auto gaps = collector_.gaps();
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].lost().first(), 42u);
  EXPECT_EQ(gaps[0].lost().last(), 42u);
  EXPECT_EQ(gaps[0].rows(), 1u);
  EXPECT_EQ(gaps[0].sequence(), 42u) << "in its place";
  EXPECT_THAT(gaps[0].reason(), ::testing::HasSubstr("poison"));
  EXPECT_EQ(collector_.undefined_layouts(), 0);
}

TEST_F(SenderTest, GapThatIsRefusedInItsPlaceIsToldAtTheEnd) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) == 42) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "batch.values: poison");
    }
    if (message.has_gap() && message.gap().lost().first() == message.gap().sequence()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "gap.sequence: must lie outside");
    }
    return grpc::Status::OK;
  };
  Append(1, 100);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(101)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 99u);
  ASSERT_EQ(collector_.gaps().size(), 1u);
  EXPECT_THAT(collector_.gaps()[0].reason(), ::testing::HasSubstr("poison"));
}

// A collector keeps 1,024 ranges of an agent, and refuses what would make one more.
TEST_F(SenderTest, JobThatMayNotBeWrittenHoldsUpNoOtherAndLeavesNoHoles) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) < 0) {
      return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "layout.source.job: not yours");
    }
    return grpc::Status::OK;
  };
  for (int i = 1; i <= 1500; ++i) {
    Append(i, i, "ours");
    Append(-i, -i, "theirs");
  }
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(3000)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 1500u);
  EXPECT_EQ(collector_.gaps().size(), 1500u);
  EXPECT_LE(collector_.most_ranges(), 1);
  EXPECT_LE(collector_.hellos().size(), 3u) << "one refusal to learn of it, one to find the job";
  EXPECT_THAT(log(), ::testing::HasSubstr("auth.tokens_file")) << "what to do";
  EXPECT_LE(std::ranges::count(log(), '\n'), 10) << log();
}

TEST_F(SenderTest, AttributesAndEventsOfAJobThatMayNotBeWrittenAreGivenUpWithIt) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.event().source().job() == "theirs" || message.attributes().job() == "theirs") {
      return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "event.source.job: not yours");
    }
    return grpc::Status::OK;
  };
  v1::Event event;
  event.mutable_source()->set_job("theirs");
  v1::Attributes attributes;
  attributes.set_job("theirs");
  for (int i = 1; i <= 50; ++i) {
    Append(i, i, "ours");
    ASSERT_TRUE(spool_->AppendEvent(event, {}).ok());
    ASSERT_TRUE(spool_->AppendAttributes(attributes, {}).ok());
  }
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(150)) << log();
  EXPECT_EQ(collector_.values().size(), 50u);
  EXPECT_LE(collector_.hellos().size(), 3u);
}

TEST_F(SenderTest, LayoutsBeyondTheCollectorsLimitShareIds) {
  collector_.welcome.mutable_limits()->set_max_layouts(2);
  for (int i = 0; i < 10; ++i) Append(i * 2 + 1, i * 2 + 2, absl::StrCat("job-", i % 5));
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(20)) << log();
  EXPECT_EQ(collector_.undefined_layouts(), 0);
}

TEST_F(SenderTest, MessageTooLargeForTheCollectorIsGivenUp) {
  collector_.welcome.mutable_limits()->set_max_message_bytes(200);
  Append(1, 1);
  v1::Event event;
  event.set_kind("note");
  event.set_message(std::string(500, 'x'));
  ASSERT_TRUE(spool_->AppendEvent(event, {}).ok());
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(2)) << log();
  EXPECT_THAT(collector_.gaps().at(0).reason(), ::testing::HasSubstr("max_message_bytes"));
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

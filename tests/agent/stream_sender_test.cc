// The sender against a scripted collector on loopback: streams are cut, messages refused, and
// acknowledgements delayed; what the collector calls durable is compared with what was spooled.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/stream/sender.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace tacho::agent {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ServerMessage, v1::ClientMessage>;

uint64_t SequenceOf(const v1::ClientMessage& message) {
  if (message.has_batch()) return message.batch().sequence();
  if (message.has_gap()) return message.gap().sequence();
  if (message.has_event()) return message.event().sequence();
  return message.attributes().sequence();
}

// Keeps what is durable over its streams, as a collector does.
class FakeCollector : public v1::Ingest::Service {
 public:
  FakeCollector() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeCollector() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // Asked for each message with a sequence; a status that is not OK ends the stream there.
  std::function<grpc::Status(const v1::ClientMessage&)> judge;
  // Acknowledge once in so many messages, or when told by flush.
  uint64_t ack_every = 1;
  v1::Welcome welcome;

  uint64_t durable() {
    absl::MutexLock lock(&mutex_);
    return durable_;
  }
  bool WaitForDurable(uint64_t sequence) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (durable() < sequence && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
    return durable() >= sequence;
  }
  // Values by sequence, and the sequences in the order in which they came, stream by stream.
  std::map<uint64_t, double> values() {
    absl::MutexLock lock(&mutex_);
    return values_;
  }
  std::vector<std::vector<uint64_t>> streams() {
    absl::MutexLock lock(&mutex_);
    return streams_;
  }
  std::vector<v1::Gap> gaps() {
    absl::MutexLock lock(&mutex_);
    return gaps_;
  }
  std::vector<v1::Hello> hellos() {
    absl::MutexLock lock(&mutex_);
    return hellos_;
  }
  int undefined_layouts() {
    absl::MutexLock lock(&mutex_);
    return undefined_layouts_;
  }

  grpc::Status Stream(grpc::ServerContext*, tacho::agent::Stream* stream) override {
    v1::ClientMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return {grpc::StatusCode::INTERNAL, ""};
    v1::ServerMessage answer;
    {
      absl::MutexLock lock(&mutex_);
      hellos_.push_back(message.hello());
      streams_.emplace_back();
      *answer.mutable_welcome() = welcome;
      answer.mutable_welcome()->set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
      answer.mutable_welcome()->set_durable_sequence(
          std::max(durable_, welcome.durable_sequence()));
    }
    stream->Write(answer);
    return Receive(stream);
  }

 private:
  grpc::Status Receive(tacho::agent::Stream* stream) {
    std::set<uint32_t> layouts;
    v1::ClientMessage message;
    uint64_t messages = 0;
    while (stream->Read(&message)) {
      if (message.has_layout()) {
        layouts.insert(message.layout().id());
        continue;
      }
      const grpc::Status verdict = judge ? judge(message) : grpc::Status::OK;
      if (!verdict.ok()) return verdict;
      Take(message, layouts);
      if (++messages % ack_every != 0) continue;
      v1::ServerMessage answer;
      FillAck(answer.mutable_ack());
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

  void FillAck(v1::Ack* ack) {
    absl::MutexLock lock(&mutex_);
    ack->set_durable_sequence(durable_);
    for (auto s = taken_.upper_bound(durable_); s != taken_.end(); ++s) {
      v1::SequenceRange* range = ack->add_durable_ahead();
      range->set_first(*s);
      range->set_last(*s);
    }
  }

  void Take(const v1::ClientMessage& message, const std::set<uint32_t>& layouts) {
    absl::MutexLock lock(&mutex_);
    const uint64_t sequence = SequenceOf(message);
    streams_.back().push_back(sequence);
    taken_.insert(sequence);
    if (message.has_batch()) {
      if (!layouts.contains(message.batch().layout())) ++undefined_layouts_;
      values_[sequence] = message.batch().values(0);
    }
    if (message.has_gap()) {
      gaps_.push_back(message.gap());
      for (uint64_t s = message.gap().lost().first(); s <= message.gap().lost().last(); ++s) {
        taken_.insert(s);
      }
    }
    while (taken_.contains(durable_ + 1)) ++durable_;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  uint64_t durable_ = 0;
  std::set<uint64_t> taken_;
  std::map<uint64_t, double> values_;
  std::vector<std::vector<uint64_t>> streams_;
  std::vector<v1::Gap> gaps_;
  std::vector<v1::Hello> hellos_;
  int undefined_layouts_ = 0;
};

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

  void StartSender(const std::string& address) {
    StreamOptions options;
    options.address = address;
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
  absl::SleepFor(absl::Milliseconds(300));
  sender_->Stop(absl::ZeroDuration());
  EXPECT_EQ(spool_->begin(), 1u);
  EXPECT_THAT(log(), ::testing::HasSubstr("old copy"));
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
  ASSERT_TRUE(collector_.WaitForDurable(101)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 99u);
  const auto gaps = collector_.gaps();
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].lost().first(), 42u);
  EXPECT_EQ(gaps[0].lost().last(), 42u);
  EXPECT_EQ(gaps[0].rows(), 1u);
  EXPECT_THAT(gaps[0].reason(), ::testing::HasSubstr("poison"));
  EXPECT_EQ(collector_.undefined_layouts(), 0);
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
  ASSERT_TRUE(collector_.WaitForDurable(3)) << log();
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
  absl::SleepFor(absl::Milliseconds(300));  // By now it waits for the next attempt.
  const absl::Time begin = absl::Now();
  sender_->Stop(absl::Seconds(30));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(spool_->begin(), 1u);
  EXPECT_EQ(spool_->synced_end(), 6u);
}

}  // namespace
}  // namespace tacho::agent

// Streams that are slowed down or turned away: the disk, rates and memory are short.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/ingest/definition_queue.h"
#include "tests/server/ingest/ingest_stream_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::HasSubstr;

// Each message is 6.4 kB and a stream may have 1 MiB waiting: reading stops far short of the end,
// and goes on when the disk does.
TEST_F(IngestStreamTest, StreamIsNotReadFromWhileTooMuchWaitsForTheDisk) {
  constexpr uint64_t kMessages = 1000;
  Client client(port_);
  client.Greet();
  client.Send(LayoutMessage(8));
  std::thread sender([&client] {
    for (uint64_t sequence = 1; sequence <= kMessages; ++sequence) {
      client.Send(BatchMessage(sequence, std::vector<double>(800), 100));
    }
  });
  ASSERT_TRUE(store_.AwaitQueued(120));
  absl::SleepFor(absl::Milliseconds(100));
  const size_t first = store_.Commit();
  EXPECT_LT(first, 200u);
  store_.CommitAtOnce();
  store_.Commit();
  EXPECT_GT(client.AwaitDurable(kMessages), 0);
  sender.join();
}

// Two batches are 1.6 s worth, the burst is 1 s.
TEST_F(IngestStreamTest, PastItsRateAnAgentIsToldAndNothingIsLost) {
  store_.CommitAtOnce();
  auto quotas = SmallQuotas();
  quotas.set_agent_samples_per_second(1000);
  Reload(quotas);
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100),
               BatchMessage(2, std::vector<double>(800), 100),
               BatchMessage(3, {1, 2, 3, 4, 5, 6, 7, 8})});
  std::optional<v1::Throttle> throttle;
  uint64_t durable = 0;
  while (durable < 3) {
    const auto answer = client.Read();
    ASSERT_TRUE(answer.has_value());
    if (answer->has_throttle() && !throttle) throttle = answer->throttle();
    durable = std::max(durable, answer->ack().durable_sequence());
  }
  ASSERT_TRUE(throttle.has_value());
  EXPECT_EQ(throttle->max_rows_per_second(), 125u);
  EXPECT_GT(throttle->pause_ms(), 100u);
  EXPECT_LE(throttle->pause_ms(), 700u);
  EXPECT_THAT(throttle->reason(), HasSubstr("quotas.agent_samples_per_second"));
  EXPECT_EQ(Throttled("agent_rate"), 1);
  EXPECT_EQ(Throttled("queue_full"), 0);
}

TEST_F(IngestStreamTest, AnAgentOverItsRateDoesNotHoldAnotherBack) {
  store_.CommitAtOnce();
  auto quotas = SmallQuotas();
  quotas.set_agent_samples_per_second(100);
  Reload(quotas);
  Client greedy(port_);
  greedy.Greet(HelloMessage("greedy"));
  greedy.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100),
               BatchMessage(2, std::vector<double>(8))});
  EXPECT_GT(greedy.AwaitDurable(1), 0);
  Client honest(port_);
  honest.Greet(HelloMessage("honest"));
  honest.Send({LayoutMessage(1), BatchMessage(1, {1})});
  EXPECT_GT(honest.AwaitDurable(1), 0);
  // With the limit gone, what waits is read as soon as its pause is over; a new stream at once.
  Reload(SmallQuotas());
  Client again(port_);
  again.Greet(HelloMessage("greedy"));
  again.Send({LayoutMessage(8), BatchMessage(2, std::vector<double>(8))});
  EXPECT_GT(again.AwaitDurable(2), 0);
}

TEST_F(IngestStreamTest, AStreamWithoutHelloIsEnded) {
  auto quotas = SmallQuotas();
  quotas.set_hello_timeout(absl::ToInt64Nanoseconds(absl::Milliseconds(50)));
  Reload(quotas);
  Client silent(port_);
  const grpc::Status status = silent.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("quotas.hello_timeout"));
  EXPECT_FALSE(HasRetryInfo(status));
  ASSERT_TRUE(AwaitNoStreams());
}

class LargeLayoutTest : public IngestStreamTest {
 protected:
  LargeLayoutTest() : IngestStreamTest(Limits()) {}

  static config::v1::Collector::Ingest Limits() {
    auto limits = SmallLimits();
    limits.set_max_message_bytes(4 * DefinitionQueue::kSmallBytes);
    return limits;
  }
  // So large that it goes through the queue of definitions.
  static v1::ClientMessage Layout() {
    v1::ClientMessage message = LayoutMessage(8);
    for (v1::Layout::Series& series : *message.mutable_layout()->mutable_series()) {
      for (int i = 0; i < 12; ++i) {
        v1::Label* const label = series.add_labels();
        label->set_name(absl::StrCat("label_", i));
        label->set_value(std::string(1000, 'x'));
      }
    }
    EXPECT_GT(message.ByteSizeLong(), DefinitionQueue::kSmallBytes);
    return message;
  }
  bool AwaitHeldBack(int times) {
    for (int i = 0; i < 2000 && Throttled("flow_control") < times; ++i) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    return Throttled("flow_control") >= times;
  }
};

TEST_F(LargeLayoutTest, AfterItAStreamIsHeldBackAsAfterAnyMessage) {
  auto quotas = SmallQuotas();
  quotas.set_pending_bytes(4096);
  Reload(quotas);
  Client definer(port_);
  definer.Greet(HelloMessage("definer"));
  Client other(port_);
  other.Greet(HelloMessage("other"));
  // By then the definer's stream is read from; else it would be held back before its layout.
  absl::SleepFor(absl::Milliseconds(100));
  other.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100)});
  ASSERT_TRUE(AwaitHeldBack(1));
  definer.Send(Layout());
  EXPECT_TRUE(AwaitHeldBack(2)) << "too much waits for the disk";
  store_.CommitAtOnce();
  store_.Commit();
  definer.Send(BatchMessage(1, {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_GT(definer.AwaitDurable(1), 0);
  EXPECT_EQ(Throttled("flow_control"), 2) << "each once";
}

// One stream fills all that may wait; another, with nothing pending, waits for its turn instead of
// finding the store's queue full.
TEST_F(IngestStreamTest, StreamsWaitForRoomInsteadOfBeingEnded) {
  auto quotas = SmallQuotas();
  quotas.set_pending_bytes(4096);
  Reload(quotas);
  Client first(port_);
  first.Greet(HelloMessage("first"));
  first.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100)});
  ASSERT_TRUE(store_.AwaitQueued(1));
  Client second(port_);
  second.Greet(HelloMessage("second"));
  second.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100)});
  for (int i = 0; i < 2000 && Throttled("flow_control") < 2; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(store_.Commit(), 1u);
  EXPECT_GT(first.AwaitDurable(1), 0);
  store_.CommitAtOnce();
  EXPECT_GT(second.AwaitDurable(1), 0);
}

TEST_F(IngestStreamTest, ShortMemorySlowsDownThenRefuses) {
  store_.CommitAtOnce();
  auto quotas = SmallQuotas();
  quotas.set_memory_bytes(1000);
  resident_ = 920;
  Reload(quotas);
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1), BatchMessage(2)});
  std::optional<v1::Throttle> throttle;
  for (uint64_t durable = 0; durable < 2;) {
    const auto answer = client.Read();
    ASSERT_TRUE(answer.has_value()) << "slowed down, not ended";
    if (answer->has_throttle()) throttle = answer->throttle();
    durable = std::max(durable, answer->ack().durable_sequence());
  }
  ASSERT_TRUE(throttle.has_value());
  EXPECT_EQ(throttle->pause_ms(), 1000u);
  EXPECT_THAT(throttle->reason(), HasSubstr("quotas.memory_bytes"));
  resident_ = 960;
  quotas_.LookAtMemory();
  Client late(port_);
  const grpc::Status status = late.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("quotas.memory_bytes"));
  EXPECT_TRUE(HasRetryInfo(status));
  resident_ = 100;
  quotas_.LookAtMemory();
  Client welcome(port_);
  welcome.Greet(HelloMessage("late"));
}

}  // namespace
}  // namespace tacho::server::ingest

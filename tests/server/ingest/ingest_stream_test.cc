// The ingest service as a plain client sees it: what is acknowledged, and how streams end.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "tests/server/ingest/ingest_malformed.h"
#include "tests/server/ingest/ingest_stream_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(IngestStreamTest, NothingIsAcknowledgedBeforeItIsDurable) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1), BatchMessage(2)});
  ASSERT_TRUE(store_.AwaitQueued(2));
  std::atomic<bool> committing{false};
  std::thread disk([this, &committing] {
    absl::SleepFor(absl::Milliseconds(50));
    committing = true;
    store_.Commit();
  });
  // The first Ack that comes at all comes after the commit. It has both messages unless the store
  // had begun a commit of the first alone.
  auto answer = client.Read();
  EXPECT_TRUE(committing);
  disk.join();
  ASSERT_TRUE(answer.has_value());
  if (answer->ack().durable_sequence() == 1) answer = client.Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->ack().durable_sequence(), 2u);
  EXPECT_EQ(answer->ack().accepted_sequence(), 2u);
}

TEST_F(IngestStreamTest, OneCommitOfManyMessagesIsOneAck) {
  Client client(port_);
  client.Greet();
  client.Send(LayoutMessage());
  for (uint64_t sequence = 1; sequence <= 200; ++sequence) client.Send(BatchMessage(sequence));
  ASSERT_TRUE(store_.AwaitQueued(200));
  store_.Commit();
  EXPECT_LE(client.AwaitDurable(200), 3);
}

TEST_F(IngestStreamTest, EveryMalformedMessageEndsTheStreamWithItsStatus) {
  store_.CommitAtOnce();
  for (const Malformed& malformed : AllMalformed()) {
    SCOPED_TRACE(malformed.name);
    Client client(port_);
    client.Send(malformed.before);
    client.Send(malformed.message);
    const grpc::Status status = client.End();
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(malformed.code));
    EXPECT_THAT(status.error_message(), HasSubstr(malformed.text));
    ASSERT_TRUE(AwaitNoStreams());
  }
}

TEST_F(IngestStreamTest, BytesThatAreNoMessageAreRefusedAsSuch) {
  auto channel =
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  PatientContext context;
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, "/tacho.v1.Ingest/Stream", &queue);
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  call->StartCall(nullptr);
  await();
  const grpc::Slice slice("\xff\xff\xff\xff garbage");
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  await();
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("ClientMessage"));
}

TEST_F(IngestStreamTest, AReportOfTheAgentsClockIsAnsweredWithHowFarItIsOff) {
  Client client(port_);
  v1::ClientMessage hello = HelloMessage();
  hello.mutable_hello()->set_clock_unix_ns(kNowNs);
  const v1::Welcome welcome = client.Greet(hello);
  ASSERT_NE(welcome.clock_mark(), 0u);
  v1::ClientMessage batch = BatchMessage(1);
  batch.mutable_clock()->set_mark(welcome.clock_mark());
  batch.mutable_clock()->set_clock_unix_ns(kNowNs + 7'200'000'000'000);
  client.Send({LayoutMessage(), batch});
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Commit();
  const auto answer = client.Read();
  ASSERT_TRUE(answer.has_value() && answer->has_ack());
  EXPECT_GT(answer->ack().clock_mark(), welcome.clock_mark());
  const v1::ClockEstimate& clock = answer->ack().agent_clock();
  EXPECT_LE(std::abs(clock.ahead_ns() - 7'200'000'000'000),
            static_cast<int64_t>(clock.uncertainty_ns()));
  EXPECT_LT(clock.uncertainty_ns(), 30'000'000'000u);
  client.Send(BatchMessage(2));
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Commit();
  EXPECT_FALSE(client.Read()->ack().has_agent_clock()) << "an agent without reports hears nothing";
}

TEST_F(IngestStreamTest, MessageAboveTheLimitIsResourceExhausted) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1, std::vector<double>(10'000))});
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// What was accepted before the mistake is stored, and the agent need not send it again.
TEST_F(IngestStreamTest, AMistakeEndsTheStreamOnlyAfterWhatCameBeforeIsAcknowledged) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1), BatchMessage(0)});
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Commit();
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client.last().ack().durable_sequence(), 1u);
}

TEST_F(IngestStreamTest, HalfCloseEndsWithOkAfterTheLastAck) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1)});
  client.HalfClose();
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Commit();
  EXPECT_TRUE(client.End().ok());
  EXPECT_EQ(client.last().ack().durable_sequence(), 1u);
}

TEST_F(IngestStreamTest, RefusedDiskEndsTheStreamWithUnavailableAndNoAck) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1)});
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Fail();
  const grpc::Status status = client.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(HasRetryInfo(status));
  EXPECT_FALSE(client.last().has_ack());
}

TEST_F(IngestStreamTest, FullQueueIsUnavailableWithARetryDelay) {
  Client client(port_);
  client.Greet();
  store_.FillQueue();
  client.Send({LayoutMessage(), BatchMessage(1)});
  const grpc::Status status = client.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(HasRetryInfo(status));
}

TEST_F(IngestStreamTest, ReconnectResumesWhereTheLastStreamBroke) {
  {
    Client client(port_);
    client.Greet();
    client.Send({LayoutMessage(), BatchMessage(1), BatchMessage(2)});
    ASSERT_TRUE(store_.AwaitQueued(2));
  }  // The connection is cut; the disk is done later.
  ASSERT_TRUE(AwaitNoStreams());
  store_.Commit();
  Client client(port_);
  EXPECT_EQ(client.Greet().durable_sequence(), 2u);
  store_.CommitAtOnce();
  client.Send({LayoutMessage(), BatchMessage(2), BatchMessage(3)});
  EXPECT_GT(client.AwaitDurable(3), 0);
  EXPECT_THAT(store_.stored(), SizeIs(3));
}

TEST_F(IngestStreamTest, NewerStreamOfAnAgentEndsTheOlder) {
  Client first(port_);
  first.Greet();
  Client second(port_);
  second.Greet();
  EXPECT_EQ(first.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  store_.CommitAtOnce();
  second.Send({LayoutMessage(), BatchMessage(1)});
  EXPECT_GT(second.AwaitDurable(1), 0);
}

TEST_F(IngestStreamTest, AnotherSpoolUnderTheSameNameIsRefused) {
  Client first(port_);
  first.Greet();
  Client second(port_);
  second.Send(HelloMessage("agent-1", 8));
  EXPECT_EQ(second.End().error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(IngestStreamTest, AMessageAboveAReloadedLimitIsRefused) {
  config::v1::Collector config;
  *config.mutable_ingest() = SmallLimits();
  config.mutable_ingest()->set_max_message_bytes(32 << 10);
  (*service_->Prepare(config))();
  Client client(port_);
  EXPECT_EQ(client.Greet().limits().max_message_bytes(), 32u << 10);
  client.Send({LayoutMessage(8), BatchMessage(1, std::vector<double>(800), 100)});
  client.Send(EventMessage(2));
  auto large = EventMessage(3);
  for (int i = 0; i < 32; ++i) {
    (*large.mutable_event()->mutable_fields())[absl::StrCat(i)] = std::string(1024, 'x');
  }
  client.Send(large);
  store_.CommitAtOnce();
  store_.Commit();
  const grpc::Status status = client.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("ingest.max_message_bytes"));
  EXPECT_EQ(client.last().ack().durable_sequence(), 2u) << "what came before is stored";
}

TEST_F(IngestStreamTest, TheLogSaysWhoseStreamEndedAndWhy) {
  {
    Client client(port_);
    client.Greet();
    client.Send(BatchMessage(1));
    EXPECT_EQ(client.End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  EXPECT_THAT(Logged(),
              ContainsRegex("level=warn msg=\"stream refused\" peer=ipv4:127.0.0.1:[0-9]+ "
                            "agent=agent-1 code=FAILED_PRECONDITION reason=\"batch.layout"));
  Client client(port_);
  client.Greet();
  service_->Drain(MonotonicNow() + absl::Seconds(20));
  EXPECT_THAT(Logged(), ContainsRegex("level=info msg=\"stream put off\" .* code=UNAVAILABLE"));
  Client late(port_);
  late.End();
  EXPECT_THAT(Logged(), ContainsRegex("msg=\"stream turned away\" peer=ipv4:127.0.0.1:[0-9]+ "
                                      "code=UNAVAILABLE reason="));
}

TEST_F(IngestStreamTest, StreamsPastTheLimitAreTurnedAway) {
  Client a(port_), b(port_), c(port_);
  a.Greet(HelloMessage("a"));
  b.Greet(HelloMessage("b"));
  c.Greet(HelloMessage("c"));
  Client d(port_);
  const grpc::Status status = d.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("max_streams"));
  EXPECT_TRUE(HasRetryInfo(status));
}

TEST_F(IngestStreamTest, DrainAcknowledgesWhatIsUnderWayAndThenEndsEveryStream) {
  Client busy(port_);
  Client idle(port_);
  idle.Greet(HelloMessage("idle"));
  busy.Greet(HelloMessage("busy"));
  busy.Send({LayoutMessage(), BatchMessage(1)});
  ASSERT_TRUE(store_.AwaitQueued(1));
  bool drained = false;
  std::thread drain([&] { drained = service_->Drain(MonotonicNow() + absl::Seconds(20)); });
  EXPECT_EQ(idle.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  store_.Commit();
  const grpc::Status status = busy.End();
  drain.join();
  EXPECT_TRUE(drained);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(HasRetryInfo(status));
  EXPECT_EQ(busy.last().ack().durable_sequence(), 1u);
  Client late(port_);
  EXPECT_EQ(late.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(IngestStreamTest, DrainGivesUpAtItsDeadlineOnADiskThatHangs) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1)});
  ASSERT_TRUE(store_.AwaitQueued(1));
  EXPECT_FALSE(service_->Drain(MonotonicNow() + absl::Milliseconds(50)));
}

}  // namespace
}  // namespace tacho::server::ingest

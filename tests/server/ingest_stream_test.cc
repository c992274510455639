// The ingest service behind a real gRPC server on loopback, seen by a plain client.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "prometheus/registry.h"
#include "server/ingest/ingest_service.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tests/server/ingest_fake_store.h"
#include "tests/server/ingest_malformed.h"
#include "tests/server/ingest_messages.h"
#include "tests/support/patient_context.h"

namespace tacho::server {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

// A stream as an agent has it.
class Client {
 public:
  explicit Client(int port)
      : channel_(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                     grpc::InsecureChannelCredentials())),
        stub_(v1::Ingest::NewStub(channel_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    stream_ = stub_->Stream(&context_);
  }
  ~Client() {
    if (!ended_) context_.TryCancel();
    if (!ended_) stream_->Finish();
  }

  bool Send(const v1::ClientMessage& message) { return stream_->Write(message); }
  void Send(const std::vector<v1::ClientMessage>& messages) {
    for (const auto& message : messages) Send(message);
  }
  std::optional<v1::ServerMessage> Read() {
    v1::ServerMessage message;
    if (!stream_->Read(&message)) return std::nullopt;
    return message;
  }
  // Says Hello and returns the Welcome.
  v1::Welcome Greet(const v1::ClientMessage& hello = HelloMessage()) {
    Send(hello);
    const auto answer = Read();
    EXPECT_TRUE(answer.has_value() && answer->has_welcome());
    return answer.has_value() ? answer->welcome() : v1::Welcome();
  }
  // Reads until everything up to `sequence` is acknowledged; how many Acks that took, 0 if never.
  int AwaitDurable(uint64_t sequence) {
    for (int acks = 1;; ++acks) {
      const auto answer = Read();
      if (!answer.has_value()) return 0;
      if (answer->ack().durable_sequence() >= sequence) return acks;
    }
  }
  void HalfClose() { stream_->WritesDone(); }
  // Reads what is left, and returns how the stream ended.
  grpc::Status End() {
    while (const auto message = Read()) last_ = *message;
    ended_ = true;
    return stream_->Finish();
  }
  const v1::ServerMessage& last() const { return last_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Ingest::Stub> stub_;
  PatientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>> stream_;
  v1::ServerMessage last_;
  bool ended_ = false;
};

bool HasRetryInfo(const grpc::Status& status) {
  google::rpc::Status rich;
  google::rpc::RetryInfo info;
  if (!rich.ParseFromString(status.error_details())) return false;
  return std::any_of(rich.details().begin(), rich.details().end(), [&info](const auto& detail) {
    return detail.UnpackTo(&info) && info.retry_delay().seconds() >= 1;
  });
}

class IngestStreamTest : public testing::Test {
 protected:
  IngestStreamTest() {
    IngestServiceOptions options;
    options.store = &store_;
    options.registry = &registry_;
    options.quotas = &quotas_;
    options.limiting = &limiting_;
    options.limits = SmallLimits();
    options.retention = absl::Hours(24);
    options.ack_tick = absl::Milliseconds(1);
    options.now = [] { return absl::FromUnixNanos(kNowNs); };
    log::LogOptions log;
    log.write = [this](log::Level, absl::string_view line) {
      absl::MutexLock lock(&log_mutex_);
      absl::StrAppend(&logged_, line);
    };
    options.log = log::Log(std::move(log));
    service_ = std::make_unique<IngestService>(std::move(options));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(SmallLimits().max_message_bytes()));
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~IngestStreamTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    store_.Commit();  // Callbacks may come after the streams have gone.
  }

  double OpenStreams() {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "tacho_ingest_streams") return family.metric[0].gauge.value;
    }
    return -1;
  }
  double Throttled(const std::string& how) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_ingest_throttled_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == how) return metric.counter.value;
      }
    }
    return -1;
  }
  void Reload(const config::v1::Quotas& quotas) {
    config::v1::Collector config;
    *config.mutable_quotas() = quotas;
    auto change = quotas_.Prepare(config);
    ASSERT_TRUE(change.ok()) << change.status();
    (*change)();
  }
  std::string Logged() {
    absl::MutexLock lock(&log_mutex_);
    return logged_;
  }
  bool AwaitNoStreams() {
    for (int i = 0; i < 2000 && OpenStreams() != 0; ++i) absl::SleepFor(absl::Milliseconds(5));
    return OpenStreams() == 0;
  }

  FakeStore store_;
  prometheus::Registry registry_;
  std::atomic<uint64_t> resident_{0};
  absl::Mutex log_mutex_;
  std::string logged_ ABSL_GUARDED_BY(log_mutex_);
  SeriesLimiting limiting_{&store_, &registry_, config::v1::Limits()};
  Quotas quotas_{{.config = SmallQuotas(), .registry = &registry_, .resident = [this] {
                    return resident_.load();
                  }}};
  std::unique_ptr<IngestService> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(IngestStreamTest, NothingIsAcknowledgedBeforeItIsDurable) {
  Client client(port_);
  client.Greet();
  client.Send({LayoutMessage(), BatchMessage(1), BatchMessage(2)});
  ASSERT_TRUE(store_.AwaitQueued(2));
  std::thread disk([this] {
    absl::SleepFor(absl::Milliseconds(50));
    store_.Commit();
  });
  // The first Ack that comes at all comes after the commit, so it has both.
  const auto answer = client.Read();
  disk.join();
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
  store_.Fail(absl::UnavailableError("disk full"));
  const grpc::Status status = client.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(HasRetryInfo(status));
  EXPECT_FALSE(client.last().has_ack());
}

TEST_F(IngestStreamTest, FullQueueIsUnavailableWithARetryDelay) {
  Client client(port_);
  client.Greet();
  store_.SetQueueFull(true);
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
  service_->Drain(absl::Now() + absl::Seconds(20));
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
  std::thread drain([&] { drained = service_->Drain(absl::Now() + absl::Seconds(20)); });
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
  EXPECT_FALSE(service_->Drain(absl::Now() + absl::Milliseconds(50)));
}

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
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.Commit();
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
}  // namespace tacho::server

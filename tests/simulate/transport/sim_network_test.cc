// The simulated network by itself: an agent's call, and a reactor that reads when it is told to.
#include "tests/simulate/transport/sim_network.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "agent/stream/ingest_call.h"
#include "gmock/gmock.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::simulate {
namespace {

using agent::IngestCall;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kHost[] = "host-1";
constexpr char kAddress[] = "collector:4717";
constexpr absl::Duration kPatience = absl::Seconds(20);

// What a reactor was told, in order.
class Notes {
 public:
  void Add(std::string note) {
    absl::MutexLock lock(&mutex_);
    notes_.push_back(std::move(note));
  }
  std::vector<std::string> all() const {
    absl::MutexLock lock(&mutex_);
    return notes_;
  }
  bool Await(const std::string& note) const {
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find(notes_.begin(), notes_.end(), note) != notes_.end();
    };
    absl::MutexLock lock(&mutex_);
    return AwaitFor(&mutex_, absl::Condition(&there), kPatience);
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

// Notes everything; finishes when it is cancelled, or the agent is done sending.
class TestReactor final : public ByteReactor {
 public:
  explicit TestReactor(Notes* notes) : notes_(notes) {}

  void ReadOne() { StartRead(&read_); }
  void ReadAll() {
    reads_on_ = true;
    ReadOne();
  }
  void WriteOne(const std::string& version) {
    v1::ServerMessage message;
    message.mutable_welcome()->set_version(version);
    bool own = false;
    written_.Clear();
    ASSERT_TRUE(
        grpc::SerializationTraits<v1::ServerMessage>::Serialize(message, &written_, &own).ok());
    StartWrite(&written_);
  }
  // It will be finished by another thread.
  void Hold() { held_ = true; }
  void EndLate() {
    notes_->Add("finishing late");
    Finish(grpc::Status::CANCELLED);
  }
  void End(const grpc::Status& status) {
    if (!held_ && !std::exchange(finished_, true)) Finish(status);
  }

  void OnReadDone(bool ok) override {
    v1::ClientMessage message;
    if (ok) ok = grpc::SerializationTraits<v1::ClientMessage>::Deserialize(&read_, &message).ok();
    notes_->Add(ok ? absl::StrCat("read ", message.hello().version().substr(0, 8)) : "read: end");
    if (!ok) return End(grpc::Status::OK);
    if (reads_on_) ReadOne();
  }
  void OnWriteDone(bool ok) override { notes_->Add(ok ? "written" : "write failed"); }
  void OnCancel() override {
    notes_->Add("cancelled");
    End(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    notes_->Add("done");
    delete this;
  }

 private:
  Notes* const notes_;
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
  bool reads_on_ = false;
  bool held_ = false;
  bool finished_ = false;
};

class SimNetworkTest : public testing::Test {
 protected:
  ~SimNetworkTest() override {
    if (call_ != nullptr) EndCall();
    call_.reset();
    network_->Stop();
    EXPECT_EQ(grpc_is_initialized(), 0);
  }

  void Start(const SimNetworkOptions& options) {
    network_ = std::make_unique<SimNetwork>(options);
    transport_ = network_->MakeTransport(kHost);
  }
  void Listen() {
    network_->Listen(kAddress, [this](const std::string& peer) {
      reactor_ = new TestReactor(&notes_);
      notes_.Add(absl::StrCat("stream of ", peer));
      return reactor_;
    });
  }
  void Dial() {
    call_ = std::make_unique<IngestCall>(kAddress, client::ChannelSecurity(), transport_.get());
  }
  // Dials, and returns once both ends know of it.
  void Connect() {
    Listen();
    Dial();
    ASSERT_TRUE(Await([this] { return call_->can_write(); }));
    ASSERT_TRUE(notes_.Await("stream of sim:host-1:1"));
  }
  // Looks at the call's events until something is so.
  bool Await(const std::function<bool()>& so, absl::Duration patience = kPatience) {
    const absl::Time until = MonotonicNow() + patience;
    while (!so()) {
      const auto event = transport_->Next(until);
      if (!event.has_value()) return so();
      if (event->tag == nullptr) continue;
      auto* const tag = static_cast<IngestCall::Tag*>(event->tag);
      if (call_->Handle(tag, event->ok) != IngestCall::Progress::kReceived) continue;
      received_.push_back(call_->received().welcome().version());
      call_->ReadNext();
    }
    return true;
  }
  grpc::Status EndOfCall() {
    EXPECT_TRUE(Await([this] { return call_->done(); }));
    return call_->status();
  }
  void EndCall() {
    call_->Cancel();
    EndOfCall();
  }
  void Write(const std::string& version, size_t bytes = 0) {
    v1::ClientMessage message;
    message.mutable_hello()->set_version(version + std::string(bytes, '.'));
    call_->Write(message);
  }

  Notes notes_;
  TestReactor* reactor_ = nullptr;  // Owns itself.
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<agent::Transport> transport_;
  std::unique_ptr<IngestCall> call_;
  std::vector<std::string> received_;
};

TEST_F(SimNetworkTest, MessagesGoBothWaysAndTheServersStatusEndsTheCall) {
  Start({});
  Connect();
  reactor_->ReadOne();
  Write("a");
  EXPECT_TRUE(notes_.Await("read a"));
  reactor_->WriteOne("one");
  EXPECT_TRUE(Await([this] { return received_.size() == 1; }));
  EXPECT_TRUE(notes_.Await("written"));
  reactor_->End({grpc::StatusCode::RESOURCE_EXHAUSTED, "full", "details"});
  const grpc::Status status = EndOfCall();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_details(), "details");
  EXPECT_THAT(received_, ElementsAre("one"));
  EXPECT_TRUE(notes_.Await("done"));
  EXPECT_THAT(notes_.all(), ElementsAre("stream of sim:host-1:1", "read a", "written", "done"));
}

TEST_F(SimNetworkTest, HalfCloseEndsTheReadsAfterTheLastMessage) {
  Start({});
  Connect();
  Write("last");
  ASSERT_TRUE(Await([this] { return call_->can_write(); }));
  call_->HalfClose();
  reactor_->ReadOne();
  EXPECT_TRUE(notes_.Await("read last"));
  reactor_->ReadOne();
  EXPECT_TRUE(notes_.Await("read: end"));
  EXPECT_TRUE(EndOfCall().ok());
  EXPECT_TRUE(notes_.Await("done"));
}

TEST_F(SimNetworkTest, EachMessageTakesTheLatency) {
  Start({.latency_min = absl::Milliseconds(30), .latency_max = absl::Milliseconds(30)});
  Connect();
  reactor_->ReadOne();
  const absl::Time sent = MonotonicNow();
  Write("a");
  EXPECT_TRUE(notes_.Await("read a"));
  EXPECT_GE(MonotonicNow() - sent, absl::Milliseconds(30));
}

TEST_F(SimNetworkTest, WriterWaitsForTheReaderOnceTheWindowIsFull) {
  Start({.window_bytes = 1000});
  Connect();
  Write("a", 999);
  ASSERT_TRUE(Await([this] { return call_->can_write(); }));
  Write("b");
  EXPECT_FALSE(Await([this] { return call_->can_write(); }, absl::Milliseconds(50)));
  reactor_->ReadOne();
  EXPECT_TRUE(Await([this] { return call_->can_write(); }));
}

TEST_F(SimNetworkTest, BandwidthHoldsTheWriterBack) {
  Start({.bytes_per_second = 100'000});
  Connect();
  const absl::Time start = MonotonicNow();
  Write("a", 5000);
  ASSERT_TRUE(Await([this] { return call_->can_write(); }));
  EXPECT_GE(MonotonicNow() - start, absl::Milliseconds(50));
}

TEST_F(SimNetworkTest, CancelledCallEndsHereAtOnceAndThereSoon) {
  Start({});
  Connect();
  reactor_->ReadOne();
  call_->Cancel();
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(notes_.Await("done"));
  EXPECT_TRUE(notes_.Await("cancelled"));
  EXPECT_TRUE(notes_.Await("read: end"));
  EXPECT_EQ(notes_.all().back(), "done");
}

TEST_F(SimNetworkTest, MessageWhoseLastByteDidNotPassIsGoneThoughItsWriteWorked) {
  Start({.latency_min = absl::Milliseconds(20), .latency_max = absl::Milliseconds(20)});
  Connect();
  reactor_->ReadAll();
  Write("whole");
  ASSERT_TRUE(Await([this] { return call_->can_write(); }));
  network_->CutAfterBytes(kHost, 50);
  Write("part", 100);
  EXPECT_TRUE(Await([this] { return call_->can_write(); }, absl::Milliseconds(10)));
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(notes_.Await("done"));
  EXPECT_TRUE(notes_.Await("read whole"));
  EXPECT_THAT(notes_.all(), Not(Contains(StartsWith("read part"))));
  EXPECT_EQ(network_->cuts(), 1u);
}

TEST_F(SimNetworkTest, AddressWithoutAListenerRefuses) {
  Start({});
  Dial();
  const grpc::Status status = EndOfCall();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("refused"));
}

TEST_F(SimNetworkTest, PartedHostIsTriedUntilThePartitionEnds) {
  Start({});
  Listen();
  network_->Partition(kHost, kAddress, true);
  Dial();
  EXPECT_FALSE(Await([this] { return call_->can_write(); }, absl::Milliseconds(50)));
  network_->Partition(kHost, kAddress, false);
  EXPECT_TRUE(Await([this] { return call_->can_write(); }));  // After TCP's first pause, a second.
}

TEST_F(SimNetworkTest, SilenceEndsAHalfOpenStreamOnBothSidesByTheirOwnClocks) {
  Start({.agent = {absl::Milliseconds(30), absl::Milliseconds(40), absl::Milliseconds(10)},
         .server = {absl::Milliseconds(500), absl::Seconds(1), absl::Seconds(1)}});
  Connect();
  reactor_->ReadOne();
  network_->HalfOpen(kHost, kAddress);
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(notes_.all(), ElementsAre("stream of sim:host-1:1"));
  EXPECT_TRUE(notes_.Await("cancelled"));
}

TEST_F(SimNetworkTest, ResetEndpointLosesItsConnectionsAndListensOn) {
  Start({});
  Connect();
  network_->Reset(kAddress);
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(notes_.Await("done"));
  Dial();
  EXPECT_TRUE(Await([this] { return call_->can_write(); }));
}

TEST_F(SimNetworkTest, UnlistenBreaksStreamsAtOnceHereAndSoonThere) {
  constexpr absl::Duration kLatency = absl::Milliseconds(300);
  Start({.latency_min = kLatency, .latency_max = kLatency});
  Connect();
  reactor_->ReadOne();
  const absl::Time start = MonotonicNow();
  network_->Unlisten(kAddress);
  EXPECT_LT(MonotonicNow() - start, kLatency);
  EXPECT_EQ(notes_.all().back(), "done");
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_GE(MonotonicNow() - start, kLatency);
}

TEST_F(SimNetworkTest, UnlistenWaitsForAReactorThatFinishesLater) {
  Start({});
  Connect();
  reactor_->Hold();
  std::thread process([this] { network_->Unlisten(kAddress); });
  EXPECT_TRUE(notes_.Await("cancelled"));
  absl::SleepFor(absl::Milliseconds(5));
  reactor_->EndLate();
  process.join();
  EXPECT_THAT(notes_.all(),
              ElementsAre("stream of sim:host-1:1", "cancelled", "finishing late", "done"));
}

TEST_F(SimNetworkTest, KilledHostReachesNothingAndANewProcessDoes) {
  Start({});
  Connect();
  network_->Kill(kHost);
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  Dial();
  EXPECT_EQ(EndOfCall().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(notes_.Await("done"));
  call_.reset();
  transport_ = network_->MakeTransport(kHost);
  Dial();
  EXPECT_TRUE(Await([this] { return call_->can_write(); }));
}

TEST_F(SimNetworkTest, RingWakesTheThreadThatWaits) {
  Start({});
  std::thread ringer([this] {
    absl::SleepFor(absl::Milliseconds(5));
    transport_->Ring();
  });
  const auto event = transport_->Next(absl::InfiniteFuture());
  ringer.join();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->tag, nullptr);
  transport_->Ring();
  transport_->Ring();
  EXPECT_TRUE(transport_->Next(absl::InfinitePast()).has_value());
  EXPECT_FALSE(transport_->Next(absl::InfinitePast()).has_value());
}

}  // namespace
}  // namespace tacho::simulate

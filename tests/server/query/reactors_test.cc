#include "server/query/reactors.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {
namespace {

// gRPC's side of a call, which sends nothing.
class Wire final : public grpc::ServerCallbackWriter<v1::RangeResponse> {
 public:
  using Reactor = StreamReactor<v1::RangeResponse>;

  explicit Wire(Reactor* reactor) : reactor_(reactor) { this->BindReactor(reactor); }

  void Finish(grpc::Status) override { ended.Notify(); }
  void SendInitialMetadata() override {}
  void Write(const v1::RangeResponse*, grpc::WriteOptions) override { written.Notify(); }
  void WriteAndFinish(const v1::RangeResponse*, grpc::WriteOptions, grpc::Status) override {
    ended.Notify();
  }

  absl::Notification written;  // The first message.
  absl::Notification ended;

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  Reactor* const reactor_;
};

v1::RangeResponse Piece() {
  v1::RangeResponse piece;
  piece.mutable_points()->add_values(1);
  return piece;
}

// Aborts if the place is given away under the reactor's lock: its owner may hold its own lock while
// it writes.
TEST(StreamReactorTest, GivesThePlaceAwayWithoutALock) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kAbort);
  const std::atomic<bool> draining = false;
  grpc::CallbackServerContext context;
  auto* reactor = new Wire::Reactor(&context, absl::Seconds(60), &draining);
  Wire wire(reactor);
  absl::Mutex places;
  bool given_away = false;
  std::thread worker([&] {
    EXPECT_TRUE(reactor->Write(Piece()).ok());
    {
      absl::MutexLock lock(&places);
      EXPECT_TRUE(reactor->Write(Piece()).ok());
    }
    const absl::Status sent = reactor->Flush(true, [&] {
      absl::MutexLock lock(&places);
      given_away = true;
    });
    EXPECT_TRUE(sent.ok()) << sent;
    EXPECT_TRUE(given_away) << "before the worker goes on";
    reactor->End(grpc::Status::OK);
  });
  wire.written.WaitForNotification();
  absl::SleepFor(absl::Milliseconds(20));  // Into Flush(); without it the end comes by End().
  reactor->OnWriteDone(true);
  wire.ended.WaitForNotification();
  worker.join();
  reactor->OnDone();
}

}  // namespace
}  // namespace tacho::server::query

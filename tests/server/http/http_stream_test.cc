// Answers that are written piece by piece.
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/http/later_server.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using StreamTest = LaterServerTest;

constexpr char kLater[] = "/later";
constexpr char kLastPiece[] = "\r\n0\r\n\r\n";

// Until more waits for the client than a writer may write, and the kernel takes no more of it.
void Fill(Responder* responder) {
  for (int i = 0; i < 10'000; ++i) {
    if (responder->unsent() > Responder::kHighWater) {
      absl::SleepFor(absl::Milliseconds(30));
      if (responder->unsent() > Responder::kHighWater) return;
    }
    responder->Write(std::string(64 << 10, 'x'));
    absl::SleepFor(absl::Microseconds(200));
  }
  FAIL() << "the client takes everything";
}

TEST_F(StreamTest, EachPieceIsAChunk) {
  Start();
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  responder->Begin({.content_type = "application/x", .body = "first"});
  EXPECT_THAT(
      client.ReadUntil("\r\n\r\n"),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\nTransfer-Encoding: chunked\r\n"),
            HasSubstr("\r\nContent-Type: application/x\r\n"), Not(HasSubstr("Content-Length"))));
  EXPECT_EQ(client.ReadBytes(10), "5\r\nfirst\r\n");
  responder->Write("");  // No chunk, as it would be the last.
  responder->Write(std::string(20, 'y'));
  EXPECT_EQ(client.ReadBytes(26), "14\r\n" + std::string(20, 'y') + "\r\n");
  responder->Finish();
  EXPECT_EQ(client.ReadBytes(5), "0\r\n\r\n");
  client.Send(Get("/healthz"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("alive")) << "the connection goes on";
}

TEST_F(StreamTest, Http10GetsNoChunks) {
  Start();
  const RawClient client(port(), "GET /later HTTP/1.0\r\n\r\n");
  const ResponderPtr responder = Await();
  responder->Begin({.body = "one"});
  responder->Write("two");
  responder->Finish();
  EXPECT_THAT(client.Read(), EndsWith("\r\n\r\nonetwo"));
}

TEST_F(StreamTest, HeadGetsNoBody) {
  Start();
  const RawClient client(port(), "HEAD /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const ResponderPtr responder = Await();
  responder->Begin({.body = "one"});
  responder->Write("two");
  responder->Finish();
  EXPECT_THAT(client.Read(), EndsWith("\r\n\r\n"));
}

TEST_F(StreamTest, AWriterLearnsWhenItsClientHasTakenEnough) {
  Start();
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  responder->Begin({});
  Fill(responder.get());
  absl::Notification room;
  responder->OnRoom([&room] { room.Notify(); });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(room.HasBeenNotified()) << "the client takes nothing";
  std::thread reader([&client] { client.Read(); });
  EXPECT_TRUE(WaitFor(room, kPatience));
  EXPECT_LE(responder->unsent(), Responder::kHighWater / 2);
  server_->Stop();
  reader.join();
}

TEST_F(StreamTest, WhoTakesNothingIsClosed) {
  Start({.answer = absl::Milliseconds(100)});
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  absl::Notification gone, room;
  responder->OnGone([&gone] { gone.Notify(); });
  responder->Begin({});
  Fill(responder.get());
  responder->OnRoom([&room] { room.Notify(); });
  EXPECT_TRUE(WaitFor(gone, kPatience));
  EXPECT_TRUE(WaitFor(room, kPatience)) << "a writer that waits is told, too";
  EXPECT_EQ(Closed("slow"), 1);
}

TEST_F(StreamTest, AStreamMayBeSilentForLongerThanItsClient) {
  Start({.answer = absl::Milliseconds(50)});
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  responder->Begin({.body = "one"});
  absl::SleepFor(absl::Milliseconds(200));
  responder->Write("two");
  responder->Finish();
  EXPECT_THAT(client.ReadAnswer(), AllOf(HasSubstr("one"), HasSubstr("two"), EndsWith(kLastPiece)));
}

TEST_F(StreamTest, WhoHangsUpIsToldOf) {
  Start();
  auto client = std::make_unique<RawClient>(port(), Get(kLater));
  const ResponderPtr responder = Await();
  absl::Notification gone;
  responder->Begin({.body = "one"});
  responder->OnGone([&gone] { gone.Notify(); });
  client.reset();
  EXPECT_TRUE(WaitFor(gone, kPatience));
  responder->Write("two");
  responder->Finish();
}

TEST_F(StreamTest, AStreamThatIsGivenUpHasNoEnd) {
  Start({.idle = absl::Minutes(10)});
  const RawClient client(port(), Get(kLater));
  ResponderPtr responder = Await();
  responder->Begin({.body = "one"});
  responder.reset();
  EXPECT_THAT(client.Read(), EndsWith("one\r\n"));
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(StreamTest, StreamsOfOneAddressAreBounded) {
  Start({.streams_per_address = 1});
  const RawClient first(port(), Get(kLater));
  const ResponderPtr one = Await();
  one->Begin({.body = "one"});
  first.ReadUntil("one\r\n");
  const RawClient second(port(), Get(kLater));
  const ResponderPtr two = Await();
  absl::Notification gone;
  two->OnGone([&gone] { gone.Notify(); });
  two->Begin({.body = "two"});
  EXPECT_THAT(second.Read(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: ")));
  EXPECT_TRUE(WaitFor(gone, kPatience));
  one->Finish();
  EXPECT_EQ(first.ReadBytes(5), "0\r\n\r\n");
  const RawClient third(port(), Get(kLater));
  const ResponderPtr three = Await();
  three->Begin({.body = "three"});
  three->Finish();
  EXPECT_THAT(third.ReadAnswer(), HasSubstr("three"));
}

TEST_F(StreamTest, WhatNobodyTakesIsBoundedTogether) {
  Start({.unsent_bytes = 200'000});
  const RawClient first(port(), Get(kLater));
  const ResponderPtr one = Await();
  absl::Notification gone;
  one->OnGone([&gone] { gone.Notify(); });
  one->Begin({});
  Fill(one.get());
  const RawClient second(port(), Get(kLater));
  const ResponderPtr two = Await();
  two->Begin({});
  Fill(two.get());
  EXPECT_TRUE(WaitFor(gone, kPatience)) << "the older goes";
  EXPECT_EQ(Closed("crowded"), 1);
}

TEST_F(StreamTest, StopCutsStreamsThatDoNotEnd) {
  Start();
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  absl::Notification gone;
  responder->OnGone([&gone] { gone.Notify(); });
  responder->Begin({.body = "one"});
  std::thread stop([this] { server_->Stop(); });
  EXPECT_THAT(client.Read(), EndsWith("one\r\n"));
  stop.join();
  EXPECT_TRUE(gone.HasBeenNotified());
}

TEST_F(StreamTest, StopLetsStreamsEnd) {
  Start();
  const RawClient client(port(), Get(kLater));
  const ResponderPtr responder = Await();
  responder->Begin({.body = "one"});
  client.ReadUntil("one");
  std::thread stop([this] { server_->Stop(); });
  absl::SleepFor(absl::Milliseconds(50));
  responder->Write("two");
  responder->Finish();
  EXPECT_THAT(client.Read(), AllOf(HasSubstr("two"), EndsWith(kLastPiece)));
  stop.join();
}

}  // namespace
}  // namespace tacho::server::http

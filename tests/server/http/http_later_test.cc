// Bodies of requests, and answers that come after the handler has returned.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/timed_wait.h"
#include "tests/server/http/later_server.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

using LaterTest = LaterServerTest;

TEST_F(LaterTest, ARequestMayBeCutAnywhere) {
  Start();
  const std::string request = Post("/echo", "the body");
  for (size_t cut = 1; cut < request.size(); ++cut) {
    const RawClient client(port(), request.substr(0, cut));
    absl::SleepFor(absl::Microseconds(200));  // So that the server reads what there is, mostly.
    client.Send(request.substr(cut));
    EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("the body")))
        << cut;
  }
}

TEST_F(LaterTest, ABodyIsBoundedAndItsLengthIsTold) {
  Start();
  const std::string longest(kMaxBody, 'y');
  EXPECT_THAT(RawClient(port(), Post("/echo", longest)).ReadAnswer(), EndsWith(longest));
  EXPECT_THAT(RawClient(port(), Post("/echo", longest + "y")).Read(), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(RawClient(port(), Post("/echo", "")).ReadAnswer(), StartsWith("HTTP/1.1 200 "));
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\n";
  EXPECT_THAT(RawClient(port(), head + "\r\n").ReadAnswer(), StartsWith("HTTP/1.1 411 "));
  EXPECT_THAT(RawClient(port(), head + "Transfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n\r\n")
                  .ReadAnswer(),
              StartsWith("HTTP/1.1 411 Length Required"));
  EXPECT_THAT(RawClient(port(), Post("/healthz", "y")).Read(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(LaterTest, ABodyThatDoesNotComeIsAnsweredWith408) {
  Start({.request = absl::Milliseconds(50)});
  const RawClient client(port(), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(LaterTest, WhoWaitsToBeAskedForABodyIsAsked) {
  Start();
  const RawClient client(port(),
                         "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                         "Content-Length: 4\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("body");
  EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("body")));
}

TEST_F(LaterTest, TheLongestPathDecidesAndMethodsAreNamed) {
  Start();
  EXPECT_THAT(RawClient(port(), Get("/below/a/b")).ReadAnswer(), EndsWith("/below/a/b"));
  EXPECT_THAT(RawClient(port(), Get("/below/deeper/x")).ReadAnswer(), EndsWith("deeper"));
  EXPECT_THAT(RawClient(port(), Get("/belo")).ReadAnswer(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(RawClient(port(), Get("/echo/more")).ReadAnswer(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(RawClient(port(), Post("/below/", "")).ReadAnswer(),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  EXPECT_THAT(RawClient(port(), "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n").ReadAnswer(),
              HasSubstr("\r\nAllow: GET, HEAD, POST\r\n"));
}

TEST_F(LaterTest, AnAnswerMayComeFromAnotherThread) {
  Start();
  const RawClient client(port(), Post("/later", "what"));
  ResponderPtr responder = Await();
  ASSERT_NE(responder, nullptr);
  std::thread([&responder] { responder->Answer({.body = "that"}); }).join();
  EXPECT_THAT(client.ReadAnswer(), EndsWith("that"));
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(request_.body, "what");
}

TEST_F(LaterTest, AnswersThatHangHoldNoThread) {
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<RawClient>(port(), Get("/later")));
  }
  std::vector<ResponderPtr> hanging;
  while (hanging.size() < clients.size()) hanging.push_back(Await());
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Health(), EndsWith("alive"));
  for (const ResponderPtr& responder : hanging) responder->Answer({.body = "at last"});
  for (const auto& client : clients) EXPECT_THAT(client->ReadAnswer(), EndsWith("at last"));
}

TEST_F(LaterTest, AForgottenAnswerIsAnErrorOfTheServer) {
  Start();
  const RawClient client(port(), Get("/later"));
  Await().reset();
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(LaterTest, WhoHangsUpIsToldOfAtOnce) {
  Start();
  auto client = std::make_unique<RawClient>(port(), Get("/later"));
  const ResponderPtr responder = Await();
  absl::Notification gone;
  responder->OnGone([&gone] { gone.Notify(); });
  EXPECT_FALSE(gone.HasBeenNotified());
  client.reset();
  EXPECT_TRUE(WaitFor(gone, kPatience));
  responder->Answer({.body = "nobody reads it"});
  EXPECT_THAT(Health(), EndsWith("alive"));
}

TEST_F(LaterTest, WhoHasItsAnswerIsNotGone) {
  Start();
  std::atomic<bool> gone = false;
  {
    const RawClient client(port(), Get("/later"));
    const ResponderPtr responder = Await();
    responder->OnGone([&gone] { gone = true; });
    responder->Answer({.body = "here"});
    EXPECT_THAT(client.ReadAnswer(), EndsWith("here"));
  }
  server_->Stop();
  EXPECT_FALSE(gone);
}

TEST_F(LaterTest, AnAnswerThatNobodyTakesCountsAs499) {
  Start();
  {
    const RawClient client(port(), Get("/later"));
    Await()->Answer({.body = std::string(size_t{32} << 20, 'x')});  // More than sockets hold.
    EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  }
  server_->Stop();
  EXPECT_EQ(Counter("tacho_http_requests_total", "499"), 1);
  EXPECT_EQ(Counter("tacho_http_requests_total", "200"), 0);
}

TEST_F(LaterTest, CallsOfOneAddressAreBounded) {
  Start({.calls_per_address = 2});
  const RawClient first(port(), Get("/later"));
  const ResponderPtr one = Await();  // Before the second comes: they could overtake each other.
  const RawClient second(port(), Get("/later"));
  const ResponderPtr two = Await();
  EXPECT_THAT(RawClient(port(), Get("/later")).ReadAnswer(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: ")));
  EXPECT_THAT(Health(), EndsWith("alive"));
  one->Answer({.body = "one"});
  EXPECT_THAT(first.ReadAnswer(), EndsWith("one"));
  const RawClient third(port(), Get("/later"));
  EXPECT_NE(Await(), nullptr) << "an answer makes room";
}

TEST_F(LaterTest, BodiesOfCallsAreBoundedTogether) {
  Start({.call_bytes = 100});
  const RawClient first(port(), Post("/later", std::string(120, 'x')));
  const ResponderPtr one = Await();  // One alone may be larger.
  EXPECT_THAT(RawClient(port(), Post("/later", "y")).Read(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("too many bytes")));
  one->Answer({.body = "one"});
  EXPECT_THAT(first.ReadAnswer(), EndsWith("one"));
  const RawClient third(port(), Post("/later", "y"));
  EXPECT_NE(Await(), nullptr) << "an answer makes room";
}

TEST_F(LaterTest, StopAnswersWhatIsNotReady) {
  Start();
  const RawClient client(port(), Get("/later"));
  const ResponderPtr responder = Await();
  absl::Notification gone;
  responder->OnGone([&gone] { gone.Notify(); });
  server_->Stop();
  EXPECT_TRUE(gone.HasBeenNotified());
  EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("draining")));
  server_.reset();
  responder->Answer({.body = "the server has gone"});
}

}  // namespace
}  // namespace tacho::server::http

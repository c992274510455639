// Several requests on one connection.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/http/later_server.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

using KeepAliveTest = LaterServerTest;

constexpr char kStays[] = "\r\nConnection: keep-alive\r\n";
constexpr char kCloses[] = "\r\nConnection: close\r\n";

TEST_F(KeepAliveTest, AConnectionTakesABoundedNumberOfRequests) {
  Start({.requests = 3});
  const RawClient client(port());
  for (int i = 0; i < 2; ++i) {
    client.Send(Post("/echo", absl::StrCat("body ", i)));
    EXPECT_THAT(client.ReadAnswer(), AllOf(HasSubstr(kStays), EndsWith(absl::StrCat("body ", i))));
  }
  client.Send(Get("/healthz"));
  EXPECT_THAT(client.Read(), AllOf(HasSubstr(kCloses), EndsWith("alive")));
}

TEST_F(KeepAliveTest, WhoDoesNotWantItIsNotKept) {
  Start();
  EXPECT_THAT(RawClient(port(), Get("/healthz", "Connection: x, Close\r\n")).Read(),
              AllOf(HasSubstr(kCloses), EndsWith("alive")));
  EXPECT_THAT(RawClient(port(), "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").Read(),
              AllOf(HasSubstr(kCloses), EndsWith("alive")));
}

TEST_F(KeepAliveTest, RefusalsKeepTheConnectionUnlessABodyMayFollow) {
  Start();
  const RawClient client(port());
  for (const char* request :
       {"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\r\n\r\n"}) {
    client.Send(request);
    EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 4"), HasSubstr(kStays)));
  }
  client.Send(Get("/healthz", "Content-Length: 3\r\n") + "abc" + Get("/healthz"));
  EXPECT_THAT(client.Read(), AllOf(HasSubstr(kCloses), EndsWith("alive")))
      << "the body of a GET is no request, and is not skipped";
}

TEST_F(KeepAliveTest, RequestsThatComeTogetherAreAnsweredInOrder) {
  Start();
  std::string all;
  for (int i = 0; i < 50; ++i) all += Post("/echo", absl::StrCat("body ", i)) + Get("/none");
  const RawClient client(port(), all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(client.ReadAnswer(), EndsWith(absl::StrCat("\r\n\r\nbody ", i)));
    const std::string refused = client.ReadAnswer();
    EXPECT_THAT(refused, AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr(i == 49 ? kCloses : kStays)));
  }
}

TEST_F(KeepAliveTest, ALaterAnswerHoldsUpTheRequestsBehindItAlone) {
  Start();
  const RawClient client(port(), Get("/later") + Get("/healthz"));
  const ResponderPtr responder = Await();
  EXPECT_THAT(Health(), EndsWith("alive"));
  responder->Answer({.body = "first"});
  EXPECT_THAT(client.ReadAnswer(), EndsWith("first"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("alive"));
}

TEST_F(KeepAliveTest, TwoRequestsMayBeCutAnywhere) {
  Start();
  const std::string requests = Post("/echo", "one") + Post("/echo", "two");
  for (size_t cut = 1; cut < requests.size(); ++cut) {
    const RawClient client(port(), requests.substr(0, cut));
    absl::SleepFor(absl::Microseconds(200));  // So that the server reads what there is, mostly.
    client.Send(requests.substr(cut));
    EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\none")) << cut;
    EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\ntwo")) << cut;
  }
}

TEST_F(KeepAliveTest, AnIdleConnectionIsClosedWithoutAWord) {
  Start({.idle = absl::Milliseconds(50)});
  const RawClient client(port(), Get("/healthz"));
  client.ReadAnswer();
  EXPECT_EQ(client.Read(), "");
  EXPECT_EQ(Closed("slow"), 0);
}

TEST_F(KeepAliveTest, TheNextRequestHasItsOwnTime) {
  Start({.request = absl::Milliseconds(50)});
  const RawClient client(port(), Get("/healthz"));
  client.ReadAnswer();
  absl::SleepFor(absl::Milliseconds(100));
  client.Send(Get("/healthz"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("alive")) << "idleness is not slowness";
  client.Send("GET /hea");
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(KeepAliveTest, IdleConnectionsMakeRoomFirst) {
  Start({.per_address = 3});
  const RawClient asks(port(), "GET /healthz HTTP/1.1\r\n");
  const RawClient idle(port(), Get("/healthz"));
  idle.ReadAnswer();
  const RawClient later_idle(port(), Get("/healthz"));
  later_idle.ReadAnswer();
  EXPECT_THAT(Health(), EndsWith("alive"));
  EXPECT_EQ(idle.Read(), "") << "idle for longest";
  EXPECT_FALSE(later_idle.IsClosed());
  asks.Send("Host: x\r\n\r\n");
  EXPECT_THAT(asks.ReadAnswer(), EndsWith("alive"));
  EXPECT_EQ(Closed("crowded"), 0);
}

TEST_F(KeepAliveTest, StopClosesIdleConnections) {
  Start();
  const RawClient client(port(), Get("/healthz"));
  client.ReadAnswer();
  const absl::Time began = absl::Now();
  server_->Stop();
  EXPECT_EQ(client.Read(), "");
  EXPECT_LT(absl::Now() - began, absl::Milliseconds(900)) << "nobody waits for them";
}

TEST_F(KeepAliveTest, RequestsAreCounted) {
  Start();
  const RawClient client(port(), Get("/healthz") + Get("/below/a") + Get("/below/b") + Get("/x"));
  for (int i = 0; i < 4; ++i) client.ReadAnswer();
  server_->Stop();
  EXPECT_EQ(Counter("tacho_http_requests_total", "/healthz"), 1);
  EXPECT_EQ(Counter("tacho_http_requests_total", "/below/"), 2);
  EXPECT_EQ(Counter("tacho_http_requests_total", "other"), 1);
  EXPECT_EQ(Counter("tacho_http_requests_total", "404"), 1);
}

}  // namespace
}  // namespace tacho::server::http

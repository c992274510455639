// Clients of the HTTP port that are slow, many, or gone, over real sockets.
#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"

namespace tacho::server::http {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kRequest[] = "GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kHeldRequest[] = "GET /held HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kLargeRequest[] = "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kHalfRequest[] = "GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: te";
// More than loopback's buffers hold.
constexpr size_t kLargeBytes = size_t{16} << 20;

using Client = RawClient;
using Clients = std::vector<std::unique_ptr<Client>>;

class HttpFrontTest : public testing::Test {
 protected:
  ~HttpFrontTest() override {
    if (!release_.HasBeenNotified()) release_.Notify();
  }

  void Start(const HttpLimits& limits = {}) {
    HttpServerOptions options;
    options.address = "127.0.0.1:0";
    options.limits = limits;
    options.registry = &registry_;
    options.routes = {
        {"/small", [](const HttpRequest&) { return HttpResponse{.body = "hello\n"}; }},
        {"/large",
         [](const HttpRequest&) { return HttpResponse{.body = std::string(kLargeBytes, 'x')}; }},
        {"/held", [this](const HttpRequest&) {
           ++held_;
           release_.WaitForNotification();
           return HttpResponse{.body = "released\n"};
         }}};
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  std::string Get() const { return Client(port(), kRequest).Read(); }
  Clients Many(size_t count, const std::string& bytes) const {
    Clients clients;
    while (clients.size() < count) clients.push_back(std::make_unique<Client>(port(), bytes));
    return clients;
  }
  double Closed(const std::string& reason) const {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_http_connections_closed_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == reason) return metric.counter.value;
      }
    }
    return -1;
  }
  double ConnectionsOpen() const {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "tacho_http_connections") return family.metric[0].gauge.value;
    }
    return -1;
  }
  void AwaitClosed(const std::string& reason, double count) const {
    for (int i = 0; i < 6000 && Closed(reason) < count; ++i) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_GE(Closed(reason), count) << reason;
  }

  void AwaitHeld(int count) const {
    while (held_ < count) absl::SleepFor(absl::Milliseconds(1));
  }

  prometheus::Registry registry_;
  absl::Notification release_;
  std::atomic<int> held_ = 0;  // Requests that wait for it.
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpFrontTest, HundredsOfSlowClientsKeepNobodyWaiting) {
  Start();
  const Clients slow_to_ask = Many(300, kHalfRequest);
  const Clients slow_to_read = Many(4, kLargeRequest);
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Get(), StartsWith("HTTP/1.1 200"));
  for (const auto& client : slow_to_ask) {
    if (!client->IsClosed()) client->Send("x");
  }
  EXPECT_THAT(Get(), HasSubstr("hello"));
}

TEST_F(HttpFrontTest, ARequestMayComeInPieces) {
  Start();
  Client client(port());
  for (const char c : std::string(kRequest)) client.Send(std::string(1, c));
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpFrontTest, ARequestThatDoesNotEndIsAnsweredWith408) {
  Start({.request = absl::Milliseconds(50)});
  EXPECT_THAT(Client(port(), kHalfRequest).Read(), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(Closed("slow"), 1);
}

TEST_F(HttpFrontTest, AHeadThatIsTooLargeIsAnsweredWith413) {
  Start();
  EXPECT_THAT(Client(port(), std::string(20'000, 'a')).Read(), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(Closed("too_large"), 1);
}

// Most clients send all of a body before they read.
TEST_F(HttpFrontTest, WhoSendsALargeBodyReadsItsRefusal) {
  Start();
  const std::string body(size_t{8} << 20, 'y');
  const Client client(
      port(),
      absl::StrCat("POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n"));
  for (int i = 0; i < 8; ++i) client.Send(body.substr(0, body.size() / 8));
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpFrontTest, ABodyWithoutAnEndIsDrainedForSomeTimeOnly) {
  Start({.drain = absl::Milliseconds(50)});
  const Client client(port(),
                      "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\ny");
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 413"));
  while (ConnectionsOpen() > 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(Closed("slow"), 0) << "it was quick to take its answer";
}

TEST_F(HttpFrontTest, ABodyWithoutAnEndIsDrainedToABoundOnly) {
  Start({.drain = absl::Minutes(10)});
  const Client client(port(),
                      "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  while (client.TrySend(std::string(65536, 'y'))) {
  }
  while (ConnectionsOpen() > 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(HttpFrontTest, AnAnswerThatIsNotTakenIsGivenUp) {
  Start({.answer = absl::Milliseconds(50)});
  const Client client(port(), kLargeRequest);
  AwaitClosed("slow", 1);
  const std::string taken = client.Read();
  EXPECT_THAT(taken.substr(0, 20), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(taken.size(), kLargeBytes);
}

TEST_F(HttpFrontTest, WhoReadsGetsAllOfALargeAnswer) {
  Start();
  EXPECT_GT(Client(port(), kLargeRequest).Read().size(), kLargeBytes);
}

TEST_F(HttpFrontTest, OfOneAddressTheLongestWaitingMakesRoom) {
  Start({.per_address = 3});
  const Clients waiting = Many(3, kHalfRequest);
  EXPECT_THAT(Get(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Closed("crowded"), 1);
  EXPECT_EQ(waiting[0]->Read(), "");
  waiting[1]->Send("xt/plain\r\n\r\n");
  EXPECT_THAT(waiting[1]->Read(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpFrontTest, OfAllTheLongestWaitingMakesRoom) {
  Start({.connections = 2});
  const Clients waiting = Many(2, kHalfRequest);
  EXPECT_THAT(Get(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(waiting[0]->Read(), "");
}

TEST_F(HttpFrontTest, WhereNobodyWaitsTheNewOneIsToldWhenToComeBack) {
  Start({.per_address = 2});
  const Clients served = Many(2, kHeldRequest);
  AwaitHeld(2);
  const std::string answer = Get();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, ContainsRegex("Retry-After: [1-3]\r\n"));
  EXPECT_EQ(Closed("busy"), 1);
}

TEST_F(HttpFrontTest, AnswersThatNobodyTakesAreBoundedTogether) {
  Start({.unsent_bytes = 1 << 20});
  const Clients unread = Many(3, kLargeRequest);
  AwaitClosed("crowded", 2);
  EXPECT_GT(Client(port(), kLargeRequest).Read().size(), kLargeBytes) << "the newest may be larger";
}

TEST_F(HttpFrontTest, StopAnswersWhoHasAsked) {
  Start();
  const Client idle(port());
  const Client asking(port(), kHeldRequest);
  AwaitHeld(1);
  std::thread stop([this] { server_->Stop(); });
  release_.Notify();
  EXPECT_THAT(asking.Read(), HasSubstr("released"));
  EXPECT_EQ(idle.Read(), "");
  stop.join();
}

}  // namespace
}  // namespace tacho::server::http

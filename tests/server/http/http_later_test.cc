// Bodies of requests, and answers that come after the handler has returned.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/timed_wait.h"
#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr size_t kMaxBody = 1000;

std::string Post(const std::string& path, const std::string& body, const std::string& more = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", more,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string Get(const std::string& path, const std::string& more = "") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", more, "\r\n");
}

// A server with a route whose handler keeps the responder for the test.
class HttpLaterTest : public testing::Test {
 protected:
  void Start(const HttpLimits& limits = {}) {
    HttpServerOptions options;
    options.address = "127.0.0.1:0";
    options.limits = limits;
    options.registry = &registry_;
    Route echo{"/echo"};
    echo.handler = [](const HttpRequest& request) { return HttpResponse{.body = request.body}; };
    echo.methods = Methods::kGetAndPost;
    echo.max_body = kMaxBody;
    Route below{"/below/"};
    below.prefix = true;
    below.handler = [](const HttpRequest& request) { return HttpResponse{.body = request.path}; };
    Route deeper = below;
    deeper.path = "/below/deeper/";
    deeper.handler = [](const HttpRequest&) { return HttpResponse{.body = "deeper"}; };
    Route later{"/later"};
    later.later = [this](HttpRequest request, ResponderPtr responder) {
      absl::MutexLock lock(&mutex_);
      request_ = std::move(request);
      waiting_.push_back(std::move(responder));
    };
    later.methods = Methods::kGetAndPost;
    later.max_body = kMaxBody;
    options.routes = {echo, below, deeper, later, {"/healthz", [](const HttpRequest&) {
                                                     return HttpResponse{.body = "alive"};
                                                   }}};
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  // The responder of the oldest request that waits.
  ResponderPtr Await() {
    absl::MutexLock lock(&mutex_);
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !waiting_.empty(); };
    if (!AwaitFor(&mutex_, absl::Condition(&any), kPatience)) return nullptr;
    ResponderPtr first = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return first;
  }
  std::string Health() const { return RawClient(port(), Get("/healthz")).ReadAnswer(); }

  prometheus::Registry registry_;
  absl::Mutex mutex_;
  HttpRequest request_ ABSL_GUARDED_BY(mutex_);  // The newest.
  std::vector<ResponderPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpLaterTest, ARequestMayBeCutAnywhere) {
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

TEST_F(HttpLaterTest, ABodyIsBoundedAndItsLengthIsTold) {
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

TEST_F(HttpLaterTest, ABodyThatDoesNotComeIsAnsweredWith408) {
  Start({.request = absl::Milliseconds(50)});
  const RawClient client(port(), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpLaterTest, WhoWaitsToBeAskedForABodyIsAsked) {
  Start();
  const RawClient client(port(),
                         "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                         "Content-Length: 4\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("body");
  EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("body")));
}

TEST_F(HttpLaterTest, TheLongestPathDecidesAndMethodsAreNamed) {
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

TEST_F(HttpLaterTest, AnAnswerMayComeFromAnotherThread) {
  Start();
  const RawClient client(port(), Post("/later", "what"));
  ResponderPtr responder = Await();
  ASSERT_NE(responder, nullptr);
  std::thread([&responder] { responder->Answer({.body = "that"}); }).join();
  EXPECT_THAT(client.ReadAnswer(), EndsWith("that"));
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(request_.body, "what");
}

TEST_F(HttpLaterTest, AnswersThatHangHoldNoThread) {
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

TEST_F(HttpLaterTest, AForgottenAnswerIsAnErrorOfTheServer) {
  Start();
  const RawClient client(port(), Get("/later"));
  Await().reset();
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpLaterTest, WhoHangsUpIsToldOfAtOnce) {
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

TEST_F(HttpLaterTest, WhoHasItsAnswerIsNotGone) {
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

TEST_F(HttpLaterTest, CallsOfOneAddressAreBounded) {
  Start({.calls_per_address = 2});
  const RawClient first(port(), Get("/later"));
  const RawClient second(port(), Get("/later"));
  const ResponderPtr one = Await();
  const ResponderPtr two = Await();
  EXPECT_THAT(RawClient(port(), Get("/later")).ReadAnswer(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: ")));
  EXPECT_THAT(Health(), EndsWith("alive"));
  one->Answer({.body = "one"});
  EXPECT_THAT(first.ReadAnswer(), EndsWith("one"));
  const RawClient third(port(), Get("/later"));
  EXPECT_NE(Await(), nullptr) << "an answer makes room";
}

TEST_F(HttpLaterTest, StopAnswersWhatIsNotReady) {
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

#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/content.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"
#include "server/http/routes.h"
#include "tests/server/memory_store.h"
#include "tests/support/http_talk.h"

namespace tacho::server::http {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::BodyOf;
using testing_support::Get;
using testing_support::Talk;

std::string Gunzip(const std::string& packed) {
  std::string plain(8 << 20, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  plain.resize(stream.total_out);
  inflateEnd(&stream);
  return plain;
}

class HttpServerTest : public testing::Test {
 protected:
  std::unique_ptr<HttpServer> Start(std::vector<Route> routes) {
    auto server = HttpServer::Start({"127.0.0.1:0", std::move(routes)});
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  static Route Page(std::string path, std::string body) {
    return {std::move(path), [body](const HttpRequest&) { return HttpResponse{.body = body}; }};
  }
};

TEST_F(HttpServerTest, ServesExactPathsAndNothingElse) {
  auto server = Start({Page("/a.b", "hello\n")});
  EXPECT_THAT(Get(server->port(), "/a.b"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(BodyOf(Get(server->port(), "/a.b")), "hello\n");
  EXPECT_EQ(BodyOf(Get(server->port(), "/a.b?query=1")), "hello\n");
  for (const char* path : {"/axb", "/a.b/", "/A.B", "/", "/../a.b"}) {
    EXPECT_THAT(Get(server->port(), path), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  auto server = Start({Page("/a", "hello\n")});
  const std::string answer = Talk(server->port(), "HEAD /a HTTP/1.0\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6"));
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(HttpServerTest, PacksWhereTheClientTakesItAndItPays) {
  const std::string large(10'000, 'x');
  auto server = Start({Page("/large", large), Page("/small", "x")});
  const std::string packed = Get(server->port(), "/large", "Accept-Encoding: br, gzip\r\n");
  EXPECT_THAT(packed, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_EQ(Gunzip(BodyOf(packed)), large);
  EXPECT_EQ(BodyOf(Get(server->port(), "/large")), large);
  EXPECT_EQ(BodyOf(Get(server->port(), "/large", "Accept-Encoding: gzip;q=0\r\n")), large);
  EXPECT_EQ(BodyOf(Get(server->port(), "/small", "Accept-Encoding: gzip\r\n")), "x");
}

TEST_F(HttpServerTest, RefusesBodiesRangesAndGarbage) {
  auto server = Start({Page("/a", std::string(100, 'x'))});
  EXPECT_THAT(Get(server->port(), "/a", "Range: bytes=0-,0-,0-,0-\r\n"),
              StartsWith("HTTP/1.1 416"));
  EXPECT_THAT(Talk(server->port(), absl::StrCat("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: ",
                                                100, "\r\n\r\n", std::string(100, 'y'))),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Talk(server->port(), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Get(server->port(), absl::StrCat("/", std::string(20'000, 'a'))),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Get(server->port(), "/a", absl::StrCat("X: ", std::string(20'000, 'a'), "\r\n")),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Get(server->port(), "/a"), HasSubstr("200 OK")) << "and goes on";
}

TEST_F(HttpServerTest, RefusesATargetThatIsTooLong) {
  auto server = Start({Page("/a", "hello\n")});
  const std::string longest = absl::StrCat("/a?", std::string((8 << 10) - 3, 'x'));
  EXPECT_THAT(Get(server->port(), longest), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get(server->port(), longest + "x"), StartsWith("HTTP/1.1 414 URI Too Long\r\n"));
}

TEST_F(HttpServerTest, AnswersBeforeABodyThatWaitsToBeAskedFor) {
  auto server = Start({Page("/a", "hello\n")});
  const std::string headers =
      " /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n";
  EXPECT_THAT(Talk(server->port(), absl::StrCat("POST", headers)), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Talk(server->port(), absl::StrCat("GET", headers)), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, TakesPutAndDeleteWhereARouteSaysSo) {
  Route route;
  route.path = "/a";
  route.methods = Methods::kPostPutDelete;
  route.max_body = 10;
  route.handler = [](const HttpRequest& request) {
    return HttpResponse{.body = absl::StrCat(request.method, " ", request.body)};
  };
  auto server = Start({std::move(route), Page("/b", "hello\n")});
  const auto ask = [&](const std::string& method, const std::string& path,
                       const std::string& rest) {
    return Talk(
        server->port(),
        absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", rest));
  };
  EXPECT_THAT(ask("PUT", "/a", "Content-Length: 2\r\n\r\nhi"), HasSubstr("PUT hi"));
  EXPECT_THAT(ask("PUT", "/a", "\r\n"), StartsWith("HTTP/1.1 411 "));
  EXPECT_THAT(ask("DELETE", "/a", "\r\n"), HasSubstr("DELETE "));
  EXPECT_THAT(ask("DELETE", "/a", "Content-Length: 11\r\n\r\n01234567890"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("GET", "/a", "\r\n"), HasSubstr("Allow: POST, PUT, DELETE"));
  EXPECT_THAT(ask("DELETE", "/b", "\r\n"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(HttpServerTest, AnIdleConnectionDoesNotKeepOthersOut) {
  auto server = Start({Page("/a", "hello\n")});
  // More clients than threads, each keeping its connection open after its answer.
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Get(server->port(), "/a", "Connection: keep-alive\r\n"), HasSubstr("hello"));
  }
}

TEST_F(HttpServerTest, AThrowingHandlerIsAnErrorOfTheServer) {
  auto server = Start({{"/t", [](const HttpRequest&) -> HttpResponse {
                          throw std::runtime_error("secret detail");
                        }}});
  const std::string answer = Get(server->port(), "/t");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(answer, Not(HasSubstr("secret")));
}

TEST_F(HttpServerTest, RefusesAPortThatIsTaken) {
  auto first = Start({});
  auto second = HttpServer::Start({absl::StrCat("127.0.0.1:", first->port()), {}});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  first->Stop();
  first->Stop();
  EXPECT_TRUE(HttpServer::Start({absl::StrCat("127.0.0.1:", first->port()), {}}).ok());
}

TEST_F(HttpServerTest, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "7412", "localhost", ":7412", "127.0.0.1:", "127.0.0.1:x",
                              "127.0.0.1:70000", "127.0.0.1:-1", "::1:80", "[::1:80", "::1]:80"}) {
    EXPECT_EQ(HttpServer::Start({address, {}}).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST_F(HttpServerTest, ListensOnIpv6) {
  auto server = HttpServer::Start({"[::1]:0", {}});
  if (absl::IsUnavailable(server.status())) GTEST_SKIP() << "no IPv6 loopback here";
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->port(), 0);
}

TEST_F(HttpServerTest, ServesManyAtOnce) {
  std::atomic<int> served = 0;
  auto server = Start({{"/a", [&](const HttpRequest&) {
                          ++served;
                          return HttpResponse{.body = "x"};
                        }}});
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int j = 0; j < 20; ++j) EXPECT_THAT(Get(server->port(), "/a"), HasSubstr("200 OK"));
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served, 160);
}

MetricsPage PageOf(const MemoryStore& store) {
  MetricsPageOptions options;
  options.store = store.get();
  return MetricsPage(std::move(options));
}

TEST(CollectorRoutes, TellWhetherTheCollectorTakesWork) {
  MemoryStore store;
  const MetricsPage page = PageOf(store);
  Readiness readiness;
  auto server = HttpServer::Start({"127.0.0.1:0", CollectorRoutes(&page, &readiness)});
  ASSERT_TRUE(server.ok());
  const int port = (*server)->port();
  EXPECT_THAT(Get(port, "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get(port, "/readyz"), ContainsRegex("Retry-After: [2-5]\r\n"));
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("starting"));
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
  readiness.SetReady();
  EXPECT_THAT(Get(port, "/readyz"), StartsWith("HTTP/1.1 200"));
  readiness.SetNotReady("draining");
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("draining"));
  EXPECT_THAT(Get(port, "/"), HasSubstr("/metrics"));
}

TEST(CollectorRoutes, NegotiateTheFormatOfMetrics) {
  MemoryStore store;
  const MetricsPage page = PageOf(store);
  const Readiness readiness;
  auto server = HttpServer::Start({"127.0.0.1:0", CollectorRoutes(&page, &readiness)});
  ASSERT_TRUE(server.ok());
  const std::string plain = Get((*server)->port(), "/metrics");
  EXPECT_THAT(plain, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(plain, HasSubstr("\ntacho_storage_series 0\n"));
  const std::string refused =
      Get((*server)->port(), "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 406"));
  EXPECT_THAT(refused, HasSubstr("version=0.0.4"));
}

TEST(Gzip, PacksTheEmptyStringAndALargeOne) {
  EXPECT_EQ(Gunzip(*Gzip("")), "");
  std::string large;
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&large, i, " ");
  EXPECT_EQ(Gunzip(*Gzip(large)), large);
}

TEST(Gzip, PiecesAreOneStreamWhateverIsInThem) {
  std::string text, noise;
  uint64_t state = 1;
  for (int i = 0; i < 400'000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    absl::StrAppend(&text, i, " ");
    for (int byte = 0; byte < 4; ++byte)
      noise.push_back(static_cast<char>(state >> (32 + 8 * byte)));
  }
  for (const std::string& bytes : {text, noise, text + noise, noise + text.substr(0, 777'777)}) {
    const std::string packed = *Gzip(bytes);
    EXPECT_TRUE(Gunzip(packed) == bytes) << bytes.size() << " bytes";
    EXPECT_LT(packed.size(), bytes.size() + 4096);
  }
}

}  // namespace
}  // namespace tacho::server::http

#include "agent/sources/fetch/http_get.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/canned_http_server.h"

namespace tacho::agent {
namespace {

using ::tacho::testing::CannedHttpServer;
using ::testing::HasSubstr;

// Fed byte by byte, and at once.
absl::StatusOr<HttpResponse> Read(const std::string& bytes, uint64_t max_body = 100) {
  HttpResponseReader at_once(max_body);
  absl::Status status = at_once.Feed(bytes);
  if (status.ok() && !at_once.done()) status = at_once.End();
  HttpResponseReader slow(max_body);
  absl::Status slow_status;
  for (size_t i = 0; i < bytes.size() && slow_status.ok() && !slow.done(); ++i) {
    slow_status = slow.Feed(bytes.substr(i, 1));
  }
  if (slow_status.ok() && !slow.done()) slow_status = slow.End();
  EXPECT_EQ(status, slow_status) << bytes;
  if (!status.ok()) return status;
  EXPECT_EQ(at_once.response().body, slow.response().body);
  return at_once.response();
}

TEST(HttpResponseTest, BodyOfEveryForm) {
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(Read("HTTP/1.0 200\r\n\r\nabc")->body, "abc") << "up to the end";
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: x\r\n\r\n")
                ->body,
            "abc");
  EXPECT_EQ(
      Read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\ncontent-length:0\r\n\r\n")->status,
      404);
  EXPECT_EQ(Read("HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 1\n\na")->content_type,
            "text/plain");
}

TEST(HttpResponseTest, RefusesWhatIsCutOffTooLongOrNoHttp) {
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc").ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n").ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n").ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n").ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n").ok());
  EXPECT_FALSE(Read("HTTP/2 200 OK\r\n\r\n").ok());
  EXPECT_FALSE(Read("").ok());
  EXPECT_FALSE(Read("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").ok());
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\n\r\nabcd", 4)->body, "abcd");
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\n\r\nabcde", 4).status().code(),
            absl::StatusCode::kResourceExhausted);
  const std::string head = "HTTP/1.1 200 OK\r\nX: ";
  HttpResponseReader reader(10);
  EXPECT_EQ(reader.Feed(head + std::string(HttpResponseReader::kMaxHeadBytes, 'x')).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(HttpUrlTest, ReadsHostPortAndPath) {
  EXPECT_EQ(ParseHttpUrl("http://localhost:2112/metrics?x=1")->path, "/metrics?x=1");
  EXPECT_EQ(ParseHttpUrl("http://localhost")->authority(), "localhost:80");
  EXPECT_EQ(ParseHttpUrl("http://[::1]:9431/m")->authority(), "[::1]:9431");
  EXPECT_EQ(ParseHttpUrl("http://h?x=1")->path, "/?x=1");
  for (const char* url :
       {"https://h", "h:1", "http://", "http://h:0", "http://h:99999", "http://h:x", "http://[::1",
        "http://h/a b", "http://u:p@h/", "http://h/\r\nX: y"}) {
    EXPECT_FALSE(ParseHttpUrl(url).ok()) << url;
  }
}

TEST(HttpGetTest, GetsAnAnswer) {
  CannedHttpServer server;
  server.Answer("a 1\n");
  const auto response = HttpGet(*ParseHttpUrl(server.url()), {.accept = "text/x"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "a 1\n");
  EXPECT_THAT(server.last_request(), HasSubstr("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_THAT(server.last_request(), HasSubstr("\r\nAccept: text/x\r\n"));
}

TEST(HttpGetTest, EndsInTimeWhenNothingComes) {
  CannedHttpServer server;
  server.AnswerNothing();
  const auto response = HttpGet(*ParseHttpUrl(server.url()), {.timeout = absl::Milliseconds(20)});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(HttpGetTest, SaysWhenNobodyListens) {
  std::string url;
  {
    const CannedHttpServer gone;
    url = gone.url();
  }
  const auto response = HttpGet(*ParseHttpUrl(url), {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace tacho::agent

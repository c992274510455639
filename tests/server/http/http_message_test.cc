#include "server/http/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

HttpRequest Parsed(const std::string& bytes) {
  auto request = ParseRequest(bytes);
  EXPECT_TRUE(request.ok()) << bytes << request.status();
  return request.value_or(HttpRequest());
}

HttpRequest WithTarget(const std::string& target) {
  return Parsed(absl::StrCat("GET ", target, " HTTP/1.1\r\n\r\n"));
}

std::string Refusal(const std::string& bytes) {
  const absl::Status status = ParseRequest(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
  return std::string(status.message());
}

std::string RefusalOfHeader(const std::string& line) {
  return Refusal(absl::StrCat("GET / HTTP/1.1\r\nHost: x\r\n", line, "\r\n\r\n"));
}

TEST(ParseRequest, ReadsARequestAsPrometheusSendsIt) {
  const HttpRequest request = Parsed(
      "GET /metrics HTTP/1.1\r\nHost: h:7412\r\nACCEPT:text/plain;q=0.5, */*\r\n"
      "Accept-Encoding: \t gzip \t\r\nX-Empty:\r\n\r\nand what follows");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_THAT(request.headers,
              ElementsAre(Pair("host", "h:7412"), Pair("accept", "text/plain;q=0.5, */*"),
                          Pair("accept-encoding", "gzip"), Pair("x-empty", "")));
  EXPECT_EQ(request.Header("accept-encoding"), "gzip");
  EXPECT_EQ(request.Header("authorization"), "");
  EXPECT_FALSE(request.has_body);
}

TEST(ParseRequest, TakesBothVersionsAndNoOther) {
  EXPECT_TRUE(ParseRequest("GET / HTTP/1.0\r\n\r\n").ok());
  EXPECT_TRUE(ParseRequest("GET / HTTP/1.1\r\n\r\n").ok());
  for (const char* version : {"HTTP/2.0", "HTTP/1.2", "http/1.1", "HTTP/1.1 ", ""}) {
    Refusal(absl::StrCat("GET / ", version, "\r\n\r\n"));
  }
}

TEST(ParseRequest, RefusesAFirstLineThatIsNoRequest) {
  for (const char* line : {"", "nonsense", "GET /", "GET  / HTTP/1.1", " GET / HTTP/1.1",
                           "GET\t/ HTTP/1.1", "G(T / HTTP/1.1", "GET / HTTP/1.1 x"}) {
    Refusal(absl::StrCat(line, "\r\n\r\n"));
  }
}

TEST(ParseRequest, RefusesATargetThatIsNoPath) {
  for (const char* target : {"*", "metrics", "h/metrics", "/a\x01", "/\x80", "?a=b", ""}) {
    Refusal(absl::StrCat("GET ", target, " HTTP/1.1\r\n\r\n"));
  }
}

// RFC 9112, 3.2.2: a server accepts what a client sends to a proxy.
TEST(ParseRequest, TakesAUrlForItsPath) {
  EXPECT_EQ(WithTarget("http://h:7412/metrics").path, "/metrics");
  EXPECT_EQ(WithTarget("HTTPS://[::1]/a%20b").path, "/a b");
  EXPECT_EQ(WithTarget("http://h").path, "/");
  EXPECT_EQ(WithTarget("http://h?a=b").path, "/");
  EXPECT_THAT(WithTarget("http://h?a=b").query, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(WithTarget("http://h/a?b=//c").query, ElementsAre(Pair("b", "//c")));
  for (const char* target : {"http://", "http:///a", "http:/a", "http://u@h/a", "ftp://h/a",
                             "http://h,g/a", "http://h#a", "http://h/\x01"}) {
    Refusal(absl::StrCat("GET ", target, " HTTP/1.1\r\n\r\n"));
  }
}

TEST(ParseRequest, TakesOneHostAtMost) {
  const auto with = [](const char* headers) {
    return absl::StrCat("GET / HTTP/1.1\r\n", headers, "\r\n");
  };
  for (const char* host : {"h", "h:7412", "[::1]:7412", "10.0.0.1", "a-b.example", ""}) {
    Parsed(with(absl::StrCat("Host: ", host, "\r\n").c_str()));
  }
  EXPECT_THAT(Refusal(with("Host: a\r\nHost: b\r\n")), HasSubstr("more than one Host"));
  Refusal(with("Host: a\r\nhost: a\r\n"));
  for (const char* host : {"a, b", "a,b", "a b", "u@h", "h/path", "http://h"}) {
    Refusal(with(absl::StrCat("Host: ", host, "\r\n").c_str()));
  }
}

TEST(ParseRequest, DecodesThePathWherePlusIsAPlus) {
  EXPECT_EQ(WithTarget("/a%20b%2fc+d").path, "/a b/c+d");
}

TEST(ParseRequest, SplitsTheQueryBeforeItDecodes) {
  EXPECT_THAT(
      WithTarget("/a?job=a%26b&stat=p50+p99&&flag&x=1=2").query,
      ElementsAre(Pair("job", "a&b"), Pair("stat", "p50 p99"), Pair("flag", ""), Pair("x", "1=2")));
  EXPECT_THAT(WithTarget("/a?").query, ElementsAre());
  EXPECT_EQ(WithTarget("/a?x=%41").target_bytes, 8u) << "as sent";
  EXPECT_EQ(WithTarget("/a?b?c=%3f").path, "/a");
}

TEST(ParseRequest, RefusesBrokenPercents) {
  for (const char* target : {"/%", "/%4", "/%zz", "/%%34", "/a?b=%", "/a?%g0=b"}) {
    EXPECT_THAT(Refusal(absl::StrCat("GET ", target, " HTTP/1.1\r\n\r\n")),
                HasSubstr("hexadecimal"));
  }
}

TEST(ParseRequest, RefusesHeadersThatTwoReadersCouldReadInDifferentWays) {
  RefusalOfHeader("X: a\r\n b");   // Continued on the next line.
  RefusalOfHeader("X: a\r\n\tb");  // The same with a tab.
  RefusalOfHeader("X : a");        // A blank before the colon.
  RefusalOfHeader("X: a\rY: b");   // A carriage return alone.
  RefusalOfHeader("X: a\nY: b");   // A line feed alone.
  RefusalOfHeader("no colon");
  RefusalOfHeader(": no name");
  RefusalOfHeader(std::string("X: a\0b", 6));
  RefusalOfHeader("X: a\x7f");
  RefusalOfHeader("N\xc3\xa4me: a");
  EXPECT_EQ(Parsed("GET / HTTP/1.1\r\nX: \xc3\xa4\r\n\r\n").Header("x"), "\xc3\xa4");
}

TEST(ParseRequest, RefusesAHeadWithoutItsEnd) {
  Refusal("");
  Refusal("GET / HTTP/1.1\r\n");
  Refusal("GET / HTTP/1.1\n\n");
}

TEST(ParseRequest, KnowsWhetherABodyFollows) {
  const auto with = [](const char* headers) {
    return Parsed(absl::StrCat("POST / HTTP/1.1\r\n", headers, "\r\n"));
  };
  EXPECT_FALSE(with("").has_body);
  EXPECT_FALSE(with("Content-Length: 0\r\n").has_body);
  EXPECT_TRUE(with("Content-Length: 17\r\n").has_body);
  EXPECT_EQ(with("Content-Length: 17\r\n").content_length, 17u);
  EXPECT_TRUE(with("Transfer-Encoding: chunked\r\n").has_body);
}

TEST(ParseRequest, RefusesLengthsThatAreNoneOrTwo) {
  for (const char* length : {"", "-1", "+1", "1.0", "0x1", "1 2", "1,1", "18446744073709551616"}) {
    RefusalOfHeader(absl::StrCat("Content-Length: ", length));
  }
  RefusalOfHeader("Content-Length: 1\r\nContent-Length: 1");
  RefusalOfHeader("Content-Length: 1\r\nTransfer-Encoding: chunked");
}

TEST(ParseRequest, CountsRepeatedHeaders) {
  const HttpRequest request = Parsed("GET / HTTP/1.1\r\nA: 1\r\na: 2\r\n\r\n");
  EXPECT_EQ(request.CountOf("a"), 2u);
  EXPECT_EQ(request.Header("a"), "1") << "the first";
}

const absl::Time kNow =
    absl::FromCivil(absl::CivilSecond(2026, 3, 3, 4, 5, 6), absl::UTCTimeZone());

TEST(WriteResponse, SaysHowLongItsBodyIs) {
  const HttpResponse response = {.body = "hello\n", .headers = {{"X-A", "b"}}};
  const std::string bytes = WriteResponse(response, kNow);
  EXPECT_THAT(bytes, StartsWith("HTTP/1.1 200 OK\r\nDate: Tue, 03 Mar 2026 04:05:06 GMT\r\n"
                                "Connection: close\r\nContent-Length: 6\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nX-A: b\r\n"));
  EXPECT_THAT(bytes, EndsWith("\r\n\r\nhello\n"));
  EXPECT_EQ(WriteResponse(response, kNow, /*with_body=*/false) + "hello\n", bytes);
  EXPECT_THAT(WriteResponse({.status = 416}, kNow), Not(HasSubstr("Content-Type")));
}

TEST(WriteResponse, HasAPhraseForEachErrorThatIsAnswered) {
  for (const errors::ErrorRow& row : errors::ErrorTable()) {
    const HttpResponse response = ErrorResponse(errors::ErrorOf(row.failure, "why"));
    EXPECT_EQ(response.status, row.http_status) << row.name;
    EXPECT_THAT(WriteResponse(response, kNow), EndsWith("\r\n\r\nwhy\n")) << row.name;
    if (row.http_status == 409 || row.http_status == 415 || row.http_status == 499) continue;
    EXPECT_THAT(WriteResponse(response, kNow), ContainsRegex("^HTTP/1.1 [0-9]+ [A-Z][a-z]+"))
        << row.name;
  }
  EXPECT_THAT(WriteResponse({.status = 416}, kNow),
              StartsWith("HTTP/1.1 416 Range Not Satisfiable\r\n"));
}

}  // namespace
}  // namespace tacho::server::http

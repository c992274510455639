#include "server/http/browser_guard.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/certificates.h"
#include "tests/support/http_talk.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;
using testing_support::Talk;

TEST(BrowserGuard, KnowsTheCollectorsNames) {
  const BrowserGuard guard(
      {.listen_address = "collector.example:7412", .hosts = {"tacho.example", "page:80"}});
  for (const char* host : {"localhost", "LOCALHOST:7412", "a.localhost:1", "127.0.0.1:7412",
                           "[::1]:7412", "[::1]", "10.1.2.3:7412", "collector.example",
                           "Collector.Example.:7412", "tacho.example:443", "page"}) {
    EXPECT_TRUE(guard.IsOurs(host)) << host;
  }
  for (const char* host :
       {"", ":7412", "evil.example", "tacho.example.evil.example:7412", "eviltacho.example",
        "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost", "1.2.3", "[::1"}) {
    EXPECT_FALSE(guard.IsOurs(host)) << host;
  }
}

TEST(BrowserGuard, KnowsTheNamesOfTheCertificate) {
  const TestCertificate authority = TestCertificate::Authority("ca");
  const TestCertificate server = TestCertificate::Make(
      {.common_name = "server", .alternative_names = {"DNS:tacho.example", "DNS:*.page.example"}},
      &authority);
  const TestFiles files;
  config::v1::Collector config;
  config.mutable_listen()->mutable_tls()->set_certificate(files.Write("crt", server.pem(), 0644));
  config.mutable_listen()->mutable_tls()->set_key(files.Write("key", server.key_pem()));
  const auto source = security::TlsSource::Create(config);
  ASSERT_TRUE(source.ok()) << source.status();
  const BrowserGuard guard({.listen_address = "0.0.0.0:7412", .tls = source->get()});
  EXPECT_TRUE(guard.IsOurs("tacho.example:7412"));
  EXPECT_TRUE(guard.IsOurs("a.page.example"));
  EXPECT_FALSE(guard.IsOurs("a.b.page.example"));
  EXPECT_FALSE(guard.IsOurs("evil.example"));
}

// A page for people, calls of the page, and what scrapers read.
class BrowserGuardTest : public testing::Test {
 protected:
  void Start(bool require_certificate = false) {
    HttpServerOptions options;
    options.address = "127.0.0.1:0";
    options.hosts = {"tacho.example"};
    options.require_certificate = require_certificate;
    const auto hello = [](const HttpRequest&) { return HttpResponse{.body = "hello\n"}; };
    Route api{"/api", hello};
    api.methods = Methods::kGetAndPost;
    api.max_body = 100;
    api.audience = Audience::kApi;
    Route page{"/ui/", hello};
    page.audience = Audience::kPage;
    Route refused = api;
    refused.path = "/refused";
    refused.handler = [](const HttpRequest&) { return HttpResponse{.status = 401}; };
    options.routes = {api, page, refused, {"/metrics", hello}};
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& line, const std::string& headers) const {
    return Talk(server_->port(), absl::StrCat(line, " HTTP/1.1\r\nConnection: close\r\n", headers,
                                              "Content-Length: 0\r\n\r\n"));
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(BrowserGuardTest, AnotherNameMayOnlyScrape) {
  Start();
  for (const char* line : {"GET /api", "POST /api", "GET /ui/", "HEAD /ui/"}) {
    const std::string answer = Ask(line, "Host: evil.example:7412\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 421 Misdirected Request\r\n")) << line;
    EXPECT_THAT(Ask(line, "Host: tacho.example\r\n"), StartsWith("HTTP/1.1 200 ")) << line;
    EXPECT_THAT(Ask(line, ""), StartsWith("HTTP/1.1 421 ")) << line;
  }
  EXPECT_THAT(Ask("GET /api", "Host: evil.example\r\n"),
              AllOf(HasSubstr("evil.example"), HasSubstr("listen.http_hosts")));
  EXPECT_THAT(Ask("GET /metrics", "Host: any.example\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask("GET /metrics", ""), StartsWith("HTTP/1.1 200 "));
}

TEST_F(BrowserGuardTest, PagesOfOtherSitesMayNotAskTheApi) {
  Start();
  for (const char* site : {"cross-site", "same-site", "x"}) {
    const std::string header = absl::StrCat("Host: localhost\r\nSec-Fetch-Site: ", site, "\r\n");
    EXPECT_THAT(Ask("POST /api", header), StartsWith("HTTP/1.1 403 ")) << site;
    EXPECT_THAT(Ask("GET /api", header), StartsWith("HTTP/1.1 403 ")) << site;
    EXPECT_THAT(Ask("GET /ui/", header), StartsWith("HTTP/1.1 200 ")) << "a link to the page";
  }
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_THAT(Ask("POST /api", absl::StrCat("Host: localhost\r\nSec-Fetch-Site: ", site, "\r\n")),
                StartsWith("HTTP/1.1 200 "))
        << site;
  }
}

TEST_F(BrowserGuardTest, OnlyTheApiRefusesWithoutADialog) {
  Start();
  EXPECT_THAT(Ask("GET /refused", "Host: localhost\r\n"),
              AllOf(HasSubstr("\r\nWWW-Authenticate: Bearer realm=\"tacho\"\r\n"),
                    Not(HasSubstr("Basic"))));
}

TEST_F(BrowserGuardTest, WhereCertificatesAreRequiredPageAndApiNeedOne) {
  Start(/*require_certificate=*/true);
  EXPECT_THAT(Ask("GET /api", "Host: localhost\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask("GET /ui/", "Host: localhost\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask("GET /metrics", "Host: localhost\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(BrowserGuardTest, BrowsersAreToldWhatThePageMayDo) {
  Start();
  const std::string page = Ask("GET /ui/", "Host: localhost\r\n");
  EXPECT_THAT(page, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; "
                              "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
                              "'none'; form-action 'none'; frame-ancestors 'none'; "
                              "require-trusted-types-for 'script'; trusted-types 'none'\r\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"),
                          HasSubstr("\r\nReferrer-Policy: same-origin\r\n"),
                          HasSubstr("\r\nCross-Origin-Opener-Policy: same-origin\r\n"),
                          HasSubstr("\r\nCross-Origin-Resource-Policy: same-origin\r\n"),
                          Not(HasSubstr("no-store")), Not(HasSubstr("Access-Control"))));
  EXPECT_THAT(Ask("POST /api", "Host: localhost\r\n"),
              AllOf(HasSubstr("\r\nCache-Control: no-store\r\n"),
                    HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n")));
  EXPECT_THAT(Ask("GET /metrics", ""), Not(HasSubstr("Content-Security-Policy")));
}

TEST(AddBrowserHeaders, KeepsWhatTheHandlerHasSet) {
  HttpResponse response;
  response.headers = {{"cache-control", "max-age=1"}};
  AddBrowserHeaders(Audience::kApi, &response);
  EXPECT_THAT(response.headers, Contains(Pair("cache-control", "max-age=1")));
  EXPECT_THAT(response.headers, Not(Contains(Pair("Cache-Control", "no-store"))));
}

}  // namespace
}  // namespace tacho::server::http

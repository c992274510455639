#include "server/web/page_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tacho::server::web {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string UrlOf(const std::string& listen, const std::string& http_host = "", bool tls = false) {
  config::v1::Collector config;
  config.mutable_listen()->set_http(listen);
  if (!http_host.empty()) config.mutable_listen()->add_http_hosts(http_host);
  config.mutable_listen()->mutable_tls()->set_http(true);
  if (tls) config.mutable_listen()->mutable_tls()->set_certificate("server.pem");
  return PageUrl(config, 7412);
}

TEST(PageUrlTest, ItIsTheAddressOfTheListener) {
  EXPECT_EQ(UrlOf("127.0.0.1:0"), "http://127.0.0.1:7412/ui/");
  EXPECT_EQ(UrlOf("collector.example:7412", "", /*tls=*/true),
            "https://collector.example:7412/ui/");
  EXPECT_EQ(UrlOf("[::1]:7412"), "http://[::1]:7412/ui/");
}

TEST(PageUrlTest, AllInterfacesAreNoAddress) {
  EXPECT_EQ(UrlOf("0.0.0.0:7412"), "");
  EXPECT_EQ(UrlOf("[::]:7412"), "");
  EXPECT_EQ(UrlOf("0.0.0.0:7412", "tacho.example"), "http://tacho.example:7412/ui/");
}

TEST(PageUrlTest, TheConfiguredOneHasASlashAtItsEnd) {
  config::v1::Collector config;
  config.mutable_listen()->set_http("127.0.0.1:7412");
  for (const char* url : {"https://tacho.example/a/ui", "https://tacho.example/a/ui/"}) {
    config.mutable_ui()->set_url(url);
    EXPECT_EQ(PageUrl(config, 7412), "https://tacho.example/a/ui/");
  }
}

TEST(PageUrlTest, ItsHostIsANameOfTheCollector) {
  EXPECT_EQ(HostOfPageUrl("https://tacho.example:8443/a/ui/"), "tacho.example:8443");
  EXPECT_EQ(HostOfPageUrl("http://[::1]/ui"), "[::1]");
  EXPECT_EQ(HostOfPageUrl("https://tacho.example"), "tacho.example");
  EXPECT_EQ(HostOfPageUrl(""), "");
}

TEST(PageUrlTest, NothingButAnAddressIsTaken) {
  for (const char* url : {"", "http://a", "https://[::1]:7412/ui/", "https://tacho.example/t/ui"}) {
    EXPECT_TRUE(CheckPageUrl(url).ok()) << url;
  }
  for (const char* url :
       {"tacho.example/ui/", "ftp://tacho.example/", "javascript:alert(1)", "https://",
        "https:///ui/", "https://a/ui/?x=1", "https://a/ui/#/job/x", "https://user@a/ui/",
        "https://a/u i/", "https://a/\nui/", "http://a/\"onclick=", "https://a/<b>"}) {
    const absl::Status status = CheckPageUrl(url);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("ui.url"), HasSubstr("https://tacho.example/ui/")));
  }
}

}  // namespace
}  // namespace tacho::server::web

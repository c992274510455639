// A client refuses bad settings before it connects.
#include "client/channel/channel_security.h"

#include <string>

#include "gmock/gmock.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "proto/base/address.h"
#include "tests/support/certificates.h"

namespace tacho::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr ChannelSecurityNames kNames = {"the-tls",       "the-ca",          "the-certificate",
                                         "the-key",       "the-server-name", "the-token",
                                         "the-permission"};
constexpr char kElsewhere[] = "collector.example:7411";

class ChannelSecurityTest : public testing::Test {
 protected:
  absl::StatusOr<SecuredChannel> Secure(absl::string_view address = "127.0.0.1:7411") {
    grpc::ChannelArguments arguments;
    return SecureChannel(security_, address, kNames, &arguments);
  }
  std::string ErrorOf(absl::string_view address = "127.0.0.1:7411") {
    return std::string(Secure(address).status().message());
  }

  TestFiles files_;
  ChannelSecurity security_;
};

TEST_F(ChannelSecurityTest, NothingIsShownWhereNothingIsConfigured) {
  const auto secured = Secure(kElsewhere);
  ASSERT_TRUE(secured.ok());
  EXPECT_EQ(secured->authorization, "");
}

TEST_F(ChannelSecurityTest, ATokenIsTheOneWordOfItsFile) {
  security_.token_file = files_.Write("token", "  abc\r\n");
  EXPECT_EQ(Secure()->authorization, "Bearer abc");
  files_.Write("token", "next\n");
  EXPECT_EQ(Secure()->authorization, "Bearer next") << "read again at each connection";
  for (const char* text : {"\n", "two words\n", "two\nlines\n", "caf\xc3\xa9\n"}) {
    files_.Write("token", text);
    EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-token"), Not(HasSubstr("two")))) << text;
  }
}

TEST_F(ChannelSecurityTest, ATokenThatEverybodyMayReadIsRefused) {
  security_.token_file = files_.Write("token", "abc", 0604);
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-token"), HasSubstr("chmod o-r")));
  files_.Write("token", "abc", 0640);
  EXPECT_EQ(ErrorOf(), "");
}

TEST_F(ChannelSecurityTest, ATokenGoesToAnotherMachineOnlyOverTlsOrWithPermission) {
  security_.token_file = files_.Write("token", "abc");
  for (const char* address : {kElsewhere, "10.0.0.1:1", "127.evil.com:1", "ipv4:10.0.0.1:1",
                              "dns:///127.0.0.1:1", "0.0.0.0:1"}) {
    EXPECT_THAT(ErrorOf(address), AllOf(HasSubstr("the-token"), HasSubstr("the-tls"),
                                        HasSubstr("the-permission"), HasSubstr(address)));
  }
  security_.tls = true;
  EXPECT_EQ(ErrorOf(kElsewhere), "");
  security_.tls = false;
  security_.allow_plaintext_token = true;
  EXPECT_EQ(ErrorOf(kElsewhere), "");
}

TEST_F(ChannelSecurityTest, WhatTlsNeedsIsChecked) {
  const auto authority = TestCertificate::Authority("ca");
  const auto own = TestCertificate::Make({.common_name = "me"}, &authority);
  security_.ca = files_.Write("ca.crt", authority.pem());
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-ca"), HasSubstr("the-tls")));
  security_.tls = true;
  EXPECT_EQ(ErrorOf(), "");
  security_.certificate = files_.Write("me.crt", own.pem());
  EXPECT_THAT(ErrorOf(), HasSubstr("the-key: is missing beside the-certificate"));
  security_.key = files_.Write("me.key", own.key_pem());
  EXPECT_EQ(ErrorOf(), "");
  security_.key = files_.Write("other.key", TestCertificate::Authority("x").key_pem());
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-key"), HasSubstr("is not the key of CN=me")));
  security_.key = files_.Write("open.key", own.key_pem(), 0644);
  EXPECT_THAT(ErrorOf(), HasSubstr("chmod o-r"));
  security_.key = files_.PathOf("me.key");
  files_.Write("me.crt",
               TestCertificate::Make({.common_name = "me", .not_after = absl::Now()}).pem());
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-certificate"), HasSubstr("has expired")));
  files_.Write("ca.crt", "garbage");
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("the-ca"), HasSubstr("no certificate")));
}

TEST(AddressTest, HostsAreTakenOffTheirPorts) {
  EXPECT_EQ(config::HostOf("a:1"), "a");
  EXPECT_EQ(config::HostOf("[::1]:1"), "::1");
  EXPECT_EQ(config::HostOf("::1"), "::1");
  EXPECT_EQ(config::HostOf("a"), "a");
  EXPECT_EQ(config::HostOf("[::1"), "[::1");
  EXPECT_FALSE(config::IsLoopback(""));
  EXPECT_FALSE(config::IsLoopback("[::1"));
}

}  // namespace
}  // namespace tacho::client

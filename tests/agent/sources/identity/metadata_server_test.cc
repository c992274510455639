#include "agent/sources/identity/metadata_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_metadata_server.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

using ::tacho::testing::FakeMetadataServer;
using ::tacho::testing::WriteFile;
using ::testing::HasSubstr;

using Manner = FakeMetadataServer::Manner;

class FindMetadataServerTest : public ::testing::Test {
 protected:
  std::string Find(bool always = false) {
    const auto found = FindMetadataServer(
        sys_,
        [this](const char* name) -> const char* {
          const auto variable = environment_.find(name);
          return variable == environment_.end() ? nullptr : variable->second.c_str();
        },
        always);
    if (!found.ok()) return std::string(found.status().message());
    return found->has_value() ? (*found)->authority() : "none";
  }
  void SetProduct(const std::string& name) {
    WriteFile(sys_ + "/class/dmi/id/product_name", name + "\n");
  }

  void TearDown() override { std::filesystem::remove_all(sys_); }

  const std::string sys_ = absl::StrCat(::testing::TempDir(), "/metadata_sys_", ::getpid());
  std::map<std::string, std::string> environment_;
};

TEST_F(FindMetadataServerTest, FirmwareSaysWhetherThereIsOne) {
  EXPECT_EQ(Find(), "none") << "no firmware at all";
  SetProduct("KVM");
  EXPECT_EQ(Find(), "none");
  SetProduct("Google Compute Engine");
  EXPECT_EQ(Find(), "169.254.169.254:80");
  SetProduct("Google");
  EXPECT_EQ(Find(), "169.254.169.254:80");
}

TEST_F(FindMetadataServerTest, EnvironmentNamesAnother) {
  environment_ = {{"GCE_METADATA_IP", "10.0.0.1"}};
  EXPECT_EQ(Find(), "10.0.0.1:80");
  environment_["GCE_METADATA_HOST"] = "localhost:8080";
  EXPECT_EQ(Find(), "localhost:8080");
  environment_["GCE_METADATA_HOST"] = "";
  EXPECT_EQ(Find(), "10.0.0.1:80") << "empty is absent";
}

TEST_F(FindMetadataServerTest, VariableThatIsNoHostIsNamed) {
  for (const char* value : {"http://x", "host/path", "a b", "host:0", "evil@host"}) {
    environment_ = {{"GCE_METADATA_HOST", value}};
    EXPECT_THAT(Find(), HasSubstr("GCE_METADATA_HOST: expected")) << value;
  }
}

TEST_F(FindMetadataServerTest, AlwaysNeedsNoFirmware) {
  EXPECT_EQ(Find(/*always=*/true), "169.254.169.254:80");
}

class MetadataServerTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Get(absl::Duration timeout = absl::Seconds(30)) {
    return MetadataServer(*ParseHttpUrl(absl::StrCat("http://", server_.authority())), timeout)
        .Get("instance/zone");
  }
  absl::StatusCode CodeWhen(Manner manner) {
    server_.Set("instance/zone", "z");
    server_.Behave(manner);
    return Get().status().code();
  }

  FakeMetadataServer server_;
};

TEST_F(MetadataServerTest, ValueComesWithTheFlavorBothWays) {
  server_.Set("instance/zone", "projects/1/zones/a");
  const auto zone = Get();
  ASSERT_TRUE(zone.ok()) << zone.status();
  EXPECT_EQ(*zone, "projects/1/zones/a");
  EXPECT_THAT(server_.last_request(), HasSubstr("GET /computeMetadata/v1/instance/zone HTTP/1.1"));
  EXPECT_THAT(server_.last_request(), HasSubstr("\r\nMetadata-Flavor: Google\r\n"));
}

TEST_F(MetadataServerTest, WhatIsNotThereOrConcealedIsNotFound) {
  EXPECT_EQ(Get().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeWhen(Manner::kConceals), absl::StatusCode::kNotFound);
}

TEST_F(MetadataServerTest, AnotherServerIsNotBelieved) {
  EXPECT_EQ(CodeWhen(Manner::kOther), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Get().status().message()), HasSubstr("no metadata server"));
}

TEST_F(MetadataServerTest, RedirectIsNotFollowed) {
  EXPECT_EQ(CodeWhen(Manner::kRedirects), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.TakePaths().size(), 1);
}

TEST_F(MetadataServerTest, TroubleHasItsCode) {
  EXPECT_EQ(CodeWhen(Manner::kOverloaded), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CodeWhen(Manner::kEndless), absl::StatusCode::kResourceExhausted);
  server_.Behave(Manner::kSilent);
  EXPECT_EQ(Get(absl::Milliseconds(50)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tacho::agent

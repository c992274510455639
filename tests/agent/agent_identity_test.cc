#include <string>

#include "agent/identity.h"
#include "gtest/gtest.h"

namespace tacho::agent {
namespace {

TEST(IdentityTest, HostNameFillsInWhatIsEmpty) {
  config::v1::Agent::Identity config;
  config.set_host("rack7");
  const auto identity = ResolveIdentity(config, [] { return "node3"; });
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->agent_id, "node3");
  EXPECT_EQ(identity->host, "rack7");
}

TEST(IdentityTest, MachineWithoutANameMustBeNamed) {
  config::v1::Agent::Identity config;
  EXPECT_EQ(ResolveIdentity(config, [] { return ""; }).status().code(),
            absl::StatusCode::kUnavailable);
  config.set_host("h");
  config.set_agent_id("a");
  EXPECT_TRUE(ResolveIdentity(config, [] { return ""; }).ok());
}

TEST(IdentityTest, RefusesWhatTheCollectorWouldRefuse) {
  config::v1::Agent::Identity config;
  const auto code = [&config] {
    return ResolveIdentity(config, [] { return "node3"; }).status().code();
  };
  config.set_agent_id(std::string(128, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  config.set_agent_id(std::string(129, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config.clear_agent_id();
  config.set_host(std::string(257, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config.clear_host();
  (*config.mutable_labels())["zone"] = "europe-west4-a";
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  (*config.mutable_labels())["1zone"] = "x";
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config.mutable_labels()->clear();
  (*config.mutable_labels())["zone"] = "";
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tacho::agent

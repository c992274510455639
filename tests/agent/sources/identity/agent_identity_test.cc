#include <gtest/gtest.h>

#include <map>
#include <string>

#include "agent/sources/identity/identity.h"

namespace tacho::agent {
namespace {

class IdentityTest : public ::testing::Test {
 protected:
  absl::StatusOr<Identity> Resolve() {
    IdentityPlaces places;
    places.host_name = [this] { return host_name_; };
    places.environment = [this](const char* name) -> const char* {
      const auto variable = environment_.find(name);
      return variable == environment_.end() ? nullptr : variable->second.c_str();
    };
    places.sys = "/no/such/sys";
    places.service_account = "/no/such/account";
    return ResolveIdentity(config_, places);
  }
  // "agent id (from), host (from)"
  std::string Names() {
    const auto identity = Resolve();
    if (!identity.ok()) return identity.status().ToString();
    return identity->agent_id + " (" + identity->agent_id_from + "), " + identity->host + " (" +
           identity->host_from + ")";
  }

  config::v1::Agent::Identity config_;
  std::map<std::string, std::string> environment_;
  std::string host_name_ = "node3";
};

TEST_F(IdentityTest, FirstThatIsThereCounts) {
  EXPECT_EQ(Names(), "node3 (host name), node3 (host name)");
  environment_["SLURMD_NODENAME"] = "slurm3";
  EXPECT_EQ(Names(), "node3 (host name), slurm3 (SLURMD_NODENAME)");
  environment_["NODE_NAME"] = "gke3";
  EXPECT_EQ(Names(), "node3 (host name), gke3 (NODE_NAME)");
  environment_["TACHO_HOST"] = "rack7";
  environment_["TACHO_AGENT_ID"] = "agent7";
  EXPECT_EQ(Names(), "agent7 (TACHO_AGENT_ID), rack7 (TACHO_HOST)");
  config_.set_agent_id("a");
  config_.set_host("h");
  EXPECT_EQ(Names(), "a (identity.agent_id), h (identity.host)");
}

TEST_F(IdentityTest, MachineWithoutANameMustBeNamed) {
  host_name_ = "";
  EXPECT_EQ(Resolve().status().code(), absl::StatusCode::kUnavailable);
  config_.set_host("h");
  EXPECT_EQ(Resolve().status().code(), absl::StatusCode::kUnavailable);
  config_.set_agent_id("a");
  EXPECT_TRUE(Resolve().ok());
}

TEST_F(IdentityTest, RefusesWhatTheCollectorWouldRefuse) {
  const auto code = [this] { return Resolve().status().code(); };
  config_.set_agent_id(std::string(128, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  config_.set_agent_id(std::string(129, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config_.clear_agent_id();
  environment_["TACHO_AGENT_ID"] = std::string(129, 'a');
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve().status().message(), "TACHO_AGENT_ID: 129 bytes, expected at most 128");
  environment_.clear();
  config_.set_host(std::string(257, 'a'));
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config_.clear_host();
  (*config_.mutable_labels())["zone"] = "europe-west4-a";
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  (*config_.mutable_labels())["1zone"] = "x";
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  config_.mutable_labels()->clear();
  (*config_.mutable_labels())["zone"] = "";
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdentityTest, ConfiguredLabelWinsAndOthersAreFoundIfWanted) {
  environment_ = {{"POD_NAMESPACE", "found"}, {"POD_NAME", "p"}, {"GCE_METADATA_HOST", "h:1"}};
  (*config_.mutable_labels())["namespace"] = "mine";
  EXPECT_EQ(Resolve()->facts.size(), 1);
  EXPECT_FALSE(Resolve()->metadata.has_value());
  config_.set_discover(true);
  EXPECT_EQ(Resolve()->facts.at("namespace").value, "mine");
  EXPECT_EQ(Resolve()->facts.at("namespace").from, kConfigured);
  EXPECT_EQ(Resolve()->facts.at("pod").from, "POD_NAME");
  ASSERT_TRUE(Resolve()->metadata.has_value());
  EXPECT_EQ(Resolve()->metadata->authority(), "h:1");
  config_.set_metadata_server("never");
  EXPECT_FALSE(Resolve()->metadata.has_value());
}

TEST_F(IdentityTest, MachineOfNobodysHasNoMetadataServer) {
  config_.set_discover(true);
  EXPECT_FALSE(Resolve()->metadata.has_value());
  config_.set_metadata_server("always");
  EXPECT_TRUE(Resolve()->metadata.has_value());
}

}  // namespace
}  // namespace tacho::agent

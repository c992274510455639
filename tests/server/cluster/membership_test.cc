// What a configuration says of a cluster: who is who, what is refused, and that channels reach.
#include "server/cluster/membership.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/base/job_shard.h"
#include "tacho/v1/cluster.grpc.pb.h"
#include "tests/support/certificates.h"

namespace tacho::server::cluster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

config::v1::Collector ConfigOf(const std::vector<std::string>& members,
                               const std::string& member = "") {
  config::v1::Collector config;
  config.mutable_cluster()->mutable_members()->Add(members.begin(), members.end());
  config.mutable_cluster()->set_member(member);
  return config;
}

const std::vector<std::string> kThree = {"tacho-0.tacho:7411", "tacho-1.tacho:7411",
                                         "tacho-2.tacho:7411"};

std::string WhyRefused(const config::v1::Collector& config, const std::string& host_name = "") {
  const auto made = Membership::Make(config, host_name);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(made.status().message());
}

TEST(MembershipTest, WithoutMembersOneCollectorKeepsEveryJob) {
  const auto alone = Membership::Make(config::v1::Collector(), "anything");
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(alone->is_cluster());
  EXPECT_EQ(alone->shards(), 1u);
  EXPECT_EQ(alone->own(), 0u);
  EXPECT_TRUE(alone->Keeps("run"));
  EXPECT_TRUE(alone->CheckKeeps("run").ok());
}

TEST(MembershipTest, TheNameOfTheMachineIsEnough) {
  for (const char* name : {"tacho-1", "tacho-1.tacho.svc.cluster.local"}) {
    const auto made = Membership::Make(ConfigOf(kThree), name);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->own(), 1u);
    EXPECT_EQ(made->shards(), 3u);
    EXPECT_EQ(made->address(2), "tacho-2.tacho:7411");
  }
}

TEST(MembershipTest, TheKeyCountsBeforeTheNameOfTheMachine) {
  for (const char* member : {"tacho-2", "tacho-2.tacho:7411"}) {
    const auto made = Membership::Make(ConfigOf(kThree, member), "tacho-0");
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->own(), 2u);
  }
}

TEST(MembershipTest, EachJobHasOneKeeper) {
  std::vector<Membership> all;
  for (const std::string& member : kThree) {
    auto made = Membership::Make(ConfigOf(kThree, member), "");
    ASSERT_TRUE(made.ok()) << made.status();
    all.push_back(*std::move(made));
  }
  for (int i = 0; i < 100; ++i) {
    const std::string job = absl::StrCat("job-", i);
    int keepers = 0;
    for (const Membership& one : all) {
      EXPECT_EQ(one.ShardOf(job), ShardOfJob(job, 3));
      keepers += one.Keeps(job) ? 1 : 0;
    }
    EXPECT_EQ(keepers, 1) << job;
  }
}

TEST(MembershipTest, TheKeeperOfAForeignJobIsNamed) {
  ASSERT_EQ(ShardOfJob("hosts", 3), 2u);
  const auto made = Membership::Make(ConfigOf(kThree), "tacho-0");
  ASSERT_TRUE(made.ok());
  const absl::Status foreign = made->CheckKeeps("hosts");
  EXPECT_EQ(foreign.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(foreign.message(),
            "job hosts belongs to tacho-2.tacho:7411 (shard 2 of 3): send it there");
}

TEST(MembershipTest, TheKeeperOfAHostsPartIsNamed) {
  config::v1::Collector config = ConfigOf(kThree);
  config.mutable_cluster()->add_split_jobs("hosts");
  const auto made = Membership::Make(config, "tacho-0");
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->IsSplit("hosts"));
  EXPECT_FALSE(made->IsSplit("run"));
  EXPECT_TRUE(made->CheckKeeps("hosts", "a").ok());
  const absl::Status foreign = made->CheckKeeps("hosts", "b");
  EXPECT_EQ(foreign.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(foreign.message(), HasSubstr("host b belongs to tacho-1.tacho:7411 (shard 1 of 3)"));
  EXPECT_EQ(made->CheckKeeps("hosts").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MembershipTest, WhoIsNotInTheListIsTold) {
  EXPECT_THAT(WhyRefused(ConfigOf(kThree), "web-7.example"),
              AllOf(HasSubstr("cluster.member: the name of this machine, web-7, is none of"),
                    HasSubstr("tacho-1.tacho:7411"), HasSubstr("set it to the address")));
  EXPECT_THAT(WhyRefused(ConfigOf(kThree, "tacho-3"), "tacho-0"),
              HasSubstr("cluster.member: tacho-3 is none of cluster.members"));
  EXPECT_THAT(WhyRefused(ConfigOf(kThree), ""), HasSubstr("this machine has no name"));
}

TEST(MembershipTest, WhoFitsTwiceIsTold) {
  const auto config = ConfigOf({"box:1", "box:2", "other:1"});
  EXPECT_THAT(WhyRefused(config, "box"), AllOf(HasSubstr("fits box:1 and box:2"),
                                               HasSubstr("the whole address of this collector")));
  const auto made = Membership::Make(ConfigOf({"box:1", "box:2"}, "box:2"), "box");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->own(), 1u);
}

TEST(MembershipTest, AListThatIsNoClusterIsRefused) {
  EXPECT_THAT(WhyRefused(ConfigOf({"a:1"}), "a"),
              HasSubstr("cluster.members: names one collector, a:1"));
  EXPECT_THAT(WhyRefused(ConfigOf({"a:1", "b:1", "a:1"}), "a"), HasSubstr("names a:1 twice"));
  EXPECT_THAT(WhyRefused(ConfigOf({"a:1", "b:0"}), "a"), HasSubstr("b:0 has the port 0"));
  EXPECT_THAT(WhyRefused(ConfigOf({}, "a")), HasSubstr("cluster.member: needs cluster.members"));
  config::v1::Collector split;
  split.mutable_cluster()->add_split_jobs("hosts");
  EXPECT_THAT(WhyRefused(split), HasSubstr("cluster.split_jobs: needs cluster.members"));
}

config::v1::Collector WithSpares(const std::vector<std::string>& members,
                                 const std::vector<std::string>& spares,
                                 const std::string& member = "") {
  config::v1::Collector config = ConfigOf(members, member);
  config.mutable_cluster()->mutable_spares()->Add(spares.begin(), spares.end());
  config.mutable_cluster()->set_ack("shared");
  return config;
}

TEST(MembershipTest, ASpareHasNoShardOfItsOwn) {
  const auto config = WithSpares({"a.tacho:1", "b.tacho:1"}, {"c.tacho:1"});
  const auto spare = FindSelf(config, "c");
  ASSERT_TRUE(spare.ok()) << spare.status();
  EXPECT_EQ(spare->address, "c.tacho:1");
  EXPECT_EQ(spare->home, std::nullopt);
  const auto member = FindSelf(config, "b");
  ASSERT_TRUE(member.ok()) << member.status();
  EXPECT_THAT(member->home, Optional(1));
}

TEST(MembershipTest, WithASeatTheOwnersAreWhereTheyAre) {
  const auto config = WithSpares({"a:1", "b:1"}, {"c:1"}, "c:1");
  std::string owner_of_1;
  const auto made = Membership::Make(config, "", Seat{.shard = 0, .owner = [&](uint32_t shard) {
                                                        return shard == 0 ? "c:1" : owner_of_1;
                                                      }});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->moves());
  EXPECT_EQ(made->own(), 0u);
  EXPECT_EQ(made->address(0), "c:1");
  EXPECT_EQ(made->address(1), "b:1");  // As long as nobody knows better.
  const auto before = made->channel(1);
  EXPECT_EQ(made->channel(1), before);
  owner_of_1 = "a:1";
  EXPECT_EQ(made->address(1), "a:1");
  EXPECT_NE(made->channel(1), before);
}

TEST(MembershipTest, OneMemberMayHaveASpare) {
  const auto made = Membership::Make(WithSpares({"a:1"}, {"b:1"}), "a");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->is_cluster());
  EXPECT_EQ(made->address(0), "a:1");
}

TEST(MembershipTest, SparesThatCannotBeAreRefused) {
  EXPECT_THAT(WhyRefused(WithSpares({}, {"c:1"})),
              HasSubstr("cluster.spares: needs cluster.members"));
  EXPECT_THAT(WhyRefused(WithSpares({"a:1", "b:1"}, {"b:1"}), "a"), HasSubstr("names b:1 twice"));
  EXPECT_THAT(WhyRefused(WithSpares({"a:1", "b:1"}, {"c:0"}), "a"),
              HasSubstr("c:0 has the port 0"));
  EXPECT_THAT(WhyRefused(WithSpares({"a:1", "b:1"}, {"c:1"}), "d"),
              HasSubstr("is none of cluster.members and cluster.spares (a:1, b:1, c:1)"));
  auto config = WithSpares({"a:1", "b:1"}, {"c:1"}, "a:1");
  config.mutable_cluster()->set_ack("local");
  EXPECT_THAT(WhyRefused(config), HasSubstr("cluster.spares: needs cluster.ack: shared"));
}

TEST(MembershipTest, AThousandAreTheMost) {
  std::vector<std::string> members;
  for (int i = 0; i < 1'000; ++i) members.push_back(absl::StrCat("m-", i, ":7411"));
  const auto made = Membership::Make(ConfigOf(members), "m-999");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->own(), 999u);
  members.push_back("m-1000:7411");
  EXPECT_THAT(WhyRefused(ConfigOf(members), "m-999"),
              HasSubstr("names 1001 collectors; at most 1000"));
}

TEST(MembershipTest, AuthoritiesThatAreNoneAreFoundAtOnce) {
  const TestFiles files;
  auto config = ConfigOf(kThree, "tacho-0");
  config.mutable_cluster()->set_ca_file(files.Write("ca.crt", "no certificate", 0644));
  EXPECT_THAT(WhyRefused(config), HasSubstr("cluster.ca_file: "));
}

// Answers with the names of the certificate that the caller shows.
class WhoAsks final : public v1::Cluster::Service {
 public:
  grpc::Status GetMembers(grpc::ServerContext* context, const v1::GetMembersRequest*,
                          v1::GetMembersResponse* response) override {
    for (const auto& name : context->auth_context()->GetPeerIdentity()) {
      response->add_members()->set_address(std::string(name.data(), name.size()));
    }
    return grpc::Status::OK;
  }
};

// A server with `credentials` as member 1; what member 0 gets from it.
grpc::Status AskMember(config::v1::Collector config,
                       const std::shared_ptr<grpc::ServerCredentials>& credentials,
                       v1::GetMembersResponse* response) {
  WhoAsks service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  auto* const cluster = config.mutable_cluster();
  cluster->add_members("127.0.0.1:1");
  cluster->add_members(absl::StrCat("127.0.0.1:", port));
  cluster->set_member("127.0.0.1:1");
  const auto made = Membership::Make(config, "");
  if (!made.ok()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, std::string(made.status().message())};
  }
  EXPECT_EQ(made->channel(1), made->channel(1));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  return v1::Cluster::NewStub(made->channel(1))->GetMembers(&context, {}, response);
}

TEST(MembershipTest, AChannelReachesAMember) {
  v1::GetMembersResponse response;
  const grpc::Status asked = AskMember({}, grpc::InsecureServerCredentials(), &response);
  EXPECT_TRUE(asked.ok()) << asked.error_message();
}

class MembershipTlsTest : public testing::Test {
 protected:
  std::shared_ptr<grpc::ServerCredentials> ServerThatAsks() const {
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_key_cert_pairs = {{own_.key_pem(), own_.pem()}};
    options.pem_root_certs = authority_.pem();
    return grpc::SslServerCredentials(options);
  }
  config::v1::Collector Config(const TestCertificate& authority) const {
    config::v1::Collector config;
    auto* const tls = config.mutable_listen()->mutable_tls();
    tls->set_certificate(files_.Write("own.crt", own_.pem(), 0644));
    tls->set_key(files_.Write("own.key", own_.key_pem()));
    config.mutable_cluster()->set_ca_file(files_.Write("ca.crt", authority.pem(), 0644));
    return config;
  }

  const TestFiles files_;
  const TestCertificate authority_ = TestCertificate::Authority("cluster");
  const TestCertificate own_ = TestCertificate::Loopback(authority_, "member");
};

TEST_F(MembershipTlsTest, MembersShowTheirCertificates) {
  v1::GetMembersResponse response;
  const grpc::Status asked = AskMember(Config(authority_), ServerThatAsks(), &response);
  ASSERT_TRUE(asked.ok()) << asked.error_message();
  EXPECT_GT(response.members_size(), 0);
}

TEST_F(MembershipTlsTest, AMemberOfAnotherAuthorityIsNotTalkedTo) {
  v1::GetMembersResponse response;
  const grpc::Status asked =
      AskMember(Config(TestCertificate::Authority("other")), ServerThatAsks(), &response);
  EXPECT_EQ(asked.error_code(), grpc::StatusCode::UNAVAILABLE) << asked.error_message();
}

}  // namespace
}  // namespace tacho::server::cluster

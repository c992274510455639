// Three members with real servers: what they say of each other.
#include "server/cluster/cluster_service.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace tacho::server::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A port that nobody uses, as far as the kernel knows.
std::string FreeAddress() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  v1::Cluster::Service nobody;
  builder.RegisterService(&nobody);
  builder.BuildAndStart()->Shutdown();
  return absl::StrCat("127.0.0.1:", port);
}

// A collector, as far as others ask for it.
class Member {
 public:
  Member(const std::vector<std::string>& members, const std::string& own, int jobs) {
    config::v1::Collector config;
    config.mutable_cluster()->mutable_members()->Add(members.begin(), members.end());
    config.mutable_cluster()->set_member(own);
    auto membership = Membership::Make(config, "");
    EXPECT_TRUE(membership.ok()) << membership.status();
    membership_ = std::make_unique<Membership>(*std::move(membership));
    service_ = std::make_unique<ClusterService>(ClusterServiceOptions{
        .membership = membership_.get(), .version = "9.9", .fill_own = [jobs](auto* member) {
          member->set_jobs(static_cast<uint64_t>(jobs));
        }});
    grpc::ServerBuilder builder;
    builder.AddListeningPort(own, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }

  v1::GetMembersResponse Ask(bool only_own = false) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::GetMembersRequest request;
    request.set_only_own(only_own);
    v1::GetMembersResponse response;
    const auto status = v1::Cluster::NewStub(server_->InProcessChannel({}))
                            ->GetMembers(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

 private:
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<ClusterService> service_;
  std::unique_ptr<grpc::Server> server_;
};

class ClusterServiceTest : public testing::Test {
 protected:
  const std::vector<std::string> members_ = {FreeAddress(), FreeAddress(), FreeAddress()};
};

TEST_F(ClusterServiceTest, EachSaysOfItselfWhatTheOthersShow) {
  Member first(members_, members_[0], 10);
  Member second(members_, members_[1], 20);
  Member third(members_, members_[2], 30);
  const auto response = second.Ask();
  EXPECT_EQ(response.own_shard(), 1u);
  ASSERT_EQ(response.members_size(), 3);
  for (int i = 0; i < 3; ++i) {
    const auto& member = response.members(i);
    EXPECT_EQ(member.shard(), static_cast<uint32_t>(i));
    EXPECT_EQ(member.address(), members_[static_cast<size_t>(i)]);
    EXPECT_EQ(member.error(), "");
    EXPECT_EQ(member.version(), "9.9");
    EXPECT_EQ(member.jobs(), static_cast<uint64_t>(10 * (i + 1)));
  }
}

TEST_F(ClusterServiceTest, OnlyOwnAsksNobody) {
  Member first(members_, members_[0], 10);
  const auto response = first.Ask(true);
  ASSERT_EQ(response.members_size(), 1);
  EXPECT_EQ(response.members(0).jobs(), 10u);
}

TEST_F(ClusterServiceTest, WhoIsAwayOrHasAnotherListHasALineThatSaysSo) {
  Member first(members_, members_[0], 10);
  Member swapped({members_[1], members_[0], members_[2]}, members_[1], 20);
  const auto response = first.Ask();
  ASSERT_EQ(response.members_size(), 3);
  EXPECT_EQ(response.members(0).error(), "");
  EXPECT_THAT(response.members(1).error(),
              HasSubstr("it keeps shard 0: give all members the same"));
  EXPECT_NE(response.members(2).error(), "");
  EXPECT_EQ(response.members(2).address(), members_[2]);
}

TEST_F(ClusterServiceTest, WithoutAClusterThereAreNoMembers) {
  const auto membership = Membership::Make(config::v1::Collector(), "");
  ClusterService service({.membership = &*membership, .fill_own = [](auto*) {}});
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  grpc::ClientContext context;
  v1::GetMembersResponse response;
  ASSERT_TRUE(
      v1::Cluster::NewStub(server->InProcessChannel({}))->GetMembers(&context, {}, &response).ok());
  EXPECT_THAT(response.members(), IsEmpty());
}

}  // namespace
}  // namespace tacho::server::cluster

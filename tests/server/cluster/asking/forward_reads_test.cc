#include "server/cluster/asking/forward_reads.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "proto/base/clock.h"
#include "server/cluster/membership.h"
#include "tacho/config/v1/collector.pb.h"
#include "tacho/v1/member_reads.grpc.pb.h"

namespace tacho::server::cluster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

// A member that begins an answer when it is told to. Its answer is one message, which names its
// shard.
class Member final : public v1::MemberReads::Service {
 public:
  Member() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Member() override {
    if (!may_begin_.HasBeenNotified()) may_begin_.Notify();
    server_->Shutdown();
  }

  grpc::Status Read(grpc::ServerContext*, const v1::MemberReadRequest* request,
                    grpc::ServerWriter<v1::MemberReadResponse>* writer) override {
    asked_.Notify();
    may_begin_.WaitForNotification();
    if (!refusal_.ok()) return refusal_;
    writer->SendInitialMetadata();
    v1::MemberReadResponse response;
    v1::Label* const label = response.add_series()->add_labels();
    label->set_name("shard");
    label->set_value(absl::StrCat(request->shard()));
    writer->Write(response);
    return grpc::Status::OK;
  }
  grpc::Status List(grpc::ServerContext*, const v1::MemberListRequest*,
                    grpc::ServerWriter<v1::MemberListResponse>*) override {
    asked_.Notify();
    may_begin_.WaitForNotification();
    return grpc::Status::OK;
  }

  const std::string& address() const { return address_; }
  bool AwaitAsked() { return asked_.WaitForNotificationWithTimeout(kPatience); }
  bool asked() const { return asked_.HasBeenNotified(); }
  void Begin() { may_begin_.Notify(); }
  // Before Begin(): the answer is this.
  void Refuse(grpc::Status refusal) { refusal_ = std::move(refusal); }

 private:
  absl::Notification asked_;
  absl::Notification may_begin_;
  grpc::Status refusal_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Shard 0 is this collector's; shards 1 and 2 are those of `first_` and `second_`.
class ForwardReadsTest : public testing::Test {
 protected:
  ForwardReadsTest()
      : membership_(MakeMembership()),
        reads_({.membership = &membership_, .registry = &registry_}) {}

  Membership MakeMembership() const {
    config::v1::Collector config;
    for (const std::string& member : {std::string("own:1"), first_.address(), second_.address()}) {
      config.mutable_cluster()->add_members(member);
    }
    auto membership = Membership::Make(config, "own");
    EXPECT_TRUE(membership.ok()) << membership.status();
    return *std::move(membership);
  }

  promread::Reader AReader() const { return {nobody_, MonotonicNow() + kPatience}; }
  absl::StatusOr<promread::MemberAnswers<v1::MemberReadResponse>> ReadBoth() {
    return reads_.Read(AReader(), {}, {1, 2});
  }

  const security::Credentials nobody_;
  prometheus::Registry registry_;
  Member first_;
  Member second_;
  Membership membership_;
  ForwardReads reads_;
};

// Two readers of which each has a worker at one member and waits for one at the other would wait
// for ever.
TEST_F(ForwardReadsTest, TheNextMemberIsAskedWhenTheOneBeforeHasBegun) {
  std::thread reader([this] {
    auto answers = ReadBoth();
    ASSERT_TRUE(answers.ok()) << answers.status();
    for (const uint32_t shard : {1, 2}) {
      promread::MemberAnswer<v1::MemberReadResponse>& answer = *(*answers)[shard - 1];
      v1::MemberReadResponse response;
      const auto more = answer.Next(&response);
      ASSERT_TRUE(more.ok()) << more.status();
      ASSERT_TRUE(*more);
      EXPECT_EQ(response.series(0).labels(0).value(), absl::StrCat(shard));
      const auto end = answer.Next(&response);
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_FALSE(*end);
    }
  });
  EXPECT_TRUE(first_.AwaitAsked());
  absl::SleepFor(absl::Milliseconds(200));  // Long enough for a call that does not wait.
  EXPECT_FALSE(second_.asked());
  first_.Begin();
  EXPECT_TRUE(second_.AwaitAsked());
  second_.Begin();
  reader.join();
}

TEST_F(ForwardReadsTest, AMemberThatRefusesDoesNotKeepTheNextFromBeingAsked) {
  first_.Refuse(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many series"));
  first_.Begin();
  second_.Begin();
  const auto answers = ReadBoth();
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_TRUE(second_.AwaitAsked());
  v1::MemberReadResponse response;
  const absl::Status refused = (*answers)[0]->Next(&response).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE((*answers)[1]->Next(&response).ok());
}

TEST_F(ForwardReadsTest, AMemberThatKeepsAnotherShardIsUnavailable) {
  first_.Refuse(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this is shard 7"));
  first_.Begin();
  const auto answers = reads_.Read(AReader(), {}, {1});
  ASSERT_TRUE(answers.ok()) << answers.status();
  v1::MemberReadResponse response;
  const absl::Status status = (*answers)[0]->Next(&response).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("this is shard 7"));
  EXPECT_THAT(status.message(), HasSubstr(first_.address()));
}

// A list takes no worker for long, and waits for no other.
TEST_F(ForwardReadsTest, ListsAreAskedForAtOnce) {
  const auto answers = reads_.List(AReader(), {}, {1, 2});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_TRUE(first_.AwaitAsked());
  EXPECT_TRUE(second_.AwaitAsked());
  first_.Begin();
  second_.Begin();
  v1::MemberListResponse response;
  for (const auto& answer : *answers) {
    const auto more = answer->Next(&response);
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_FALSE(*more);
  }
}

TEST_F(ForwardReadsTest, NobodyIsAskedWhileTheCollectorDrains) {
  reads_.Drain();
  EXPECT_TRUE(absl::IsUnavailable(ReadBoth().status()));
  EXPECT_FALSE(first_.asked());
}

}  // namespace
}  // namespace tacho::server::cluster

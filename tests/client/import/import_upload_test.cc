// An import sends over Ingest to a collector that each test scripts.
#include <atomic>
#include <string>

#include "client/import/upload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/job_shard.h"
#include "tacho/v1/cluster.grpc.pb.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::importer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ImportUploadTest : public ::testing::Test {
 protected:
  ImportUploadTest() { collector_.welcome.mutable_limits()->set_max_layouts(2); }

  UploadOptions Options() {
    UploadOptions options;
    options.address = collector_.address();
    options.agent_id = "import-x";
    options.generation = 7;
    options.patience = absl::Seconds(30);
    options.say = [this](absl::string_view line) { said_.emplace_back(line); };
    return options;
  }

  static v1::ClientMessage Batch(uint64_t sequence) {
    v1::ClientMessage message;
    message.mutable_batch()->set_sequence(sequence);
    message.mutable_batch()->add_times_unix_ns(1);
    message.mutable_batch()->add_values(static_cast<double>(sequence));
    return message;
  }

  // Messages first..last, of three layouts in turn.
  absl::Status SendAll(Upload& upload, uint64_t first, uint64_t last) {
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
      const v1::Layout* layout = &layouts_[sequence % 3];
      absl::Status status = upload.Send(sequence, layout, Batch(sequence));
      if (!status.ok()) return status;
    }
    return upload.Finish();
  }

  agent::FakeCollector collector_;
  v1::Layout layouts_[3];
  std::vector<std::string> said_;
};

TEST_F(ImportUploadTest, EverythingIsDurableInTheEnd) {
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  ASSERT_TRUE(SendAll(upload, 1, 200).ok());
  EXPECT_EQ(collector_.durable(), 200);
  EXPECT_THAT(collector_.values(), SizeIs(200));
  EXPECT_EQ(collector_.undefined_layouts(), 0) << "three layouts, numbers for two";
  EXPECT_EQ(upload.connections(), 1);
  ASSERT_THAT(collector_.hellos(), SizeIs(1));
  EXPECT_EQ(collector_.hellos()[0].agent_id(), "import-x");
  EXPECT_EQ(collector_.hellos()[0].spool_generation(), 7);
}

TEST_F(ImportUploadTest, WhatAnEarlierRunDeliveredIsKnown) {
  collector_.welcome.set_durable_sequence(3);
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  EXPECT_TRUE(upload.WasDurable(3));
  EXPECT_FALSE(upload.WasDurable(4));
}

TEST_F(ImportUploadTest, BusyCollectorIsTriedAgainAndGetsWhatItDoesNotHave) {
  std::atomic<int> refusals{2};
  collector_.judge = [&refusals](const v1::ClientMessage& message) {
    if (message.batch().sequence() != 50 || refusals-- <= 0) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the disk is full");
  };
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  ASSERT_TRUE(SendAll(upload, 1, 100).ok());
  EXPECT_EQ(collector_.durable(), 100);
  EXPECT_EQ(collector_.undefined_layouts(), 0);
  const auto streams = collector_.streams();
  ASSERT_THAT(streams, SizeIs(3));
  EXPECT_EQ(streams[2].front(), 50) << "what was acknowledged is not sent again";
  ASSERT_FALSE(said_.empty());
  EXPECT_THAT(said_[0], HasSubstr("the disk is full"));
}

TEST_F(ImportUploadTest, RestartOfTheCollectorIsSurvived) {
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    ASSERT_TRUE(upload.Send(sequence, &layouts_[0], Batch(sequence)).ok());
  }
  collector_.Stop();
  collector_.Start();
  ASSERT_TRUE(SendAll(upload, 21, 60).ok());
  EXPECT_EQ(collector_.durable(), 60);
  EXPECT_EQ(upload.connections(), 2);
}

TEST_F(ImportUploadTest, MalformedMessageEndsItAtOnce) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.batch().sequence() < 5) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "values: 3 of 4");
  };
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  const absl::Status status = SendAll(upload, 1, 2000);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(upload.connections(), 1);
}

TEST_F(ImportUploadTest, PatienceEnds) {
  collector_.judge = [](const v1::ClientMessage&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  };
  UploadOptions options = Options();
  options.patience = absl::Milliseconds(1);
  Upload upload(std::move(options));
  ASSERT_TRUE(upload.Connect().ok());
  const absl::Status status = SendAll(upload, 1, 3);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(upload.reached());
}

TEST_F(ImportUploadTest, NobodyThereIsSaidAtOnce) {
  collector_.Stop();
  Upload upload(Options());
  const absl::Status status = upload.Connect();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(upload.reached());
  EXPECT_TRUE(said_.empty());
}

TEST_F(ImportUploadTest, ThrottleIsObeyed) {
  collector_.throttle.set_max_rows_per_second(20);
  Upload upload(Options());
  ASSERT_TRUE(upload.Connect().ok());
  // Rows may be on their way before it comes; from then on seven of them take that long.
  uint64_t sequence = 0;
  absl::Duration took;
  for (int round = 0; round < 1000 && took < absl::Milliseconds(200); ++round) {
    const absl::Time begin = absl::Now();
    for (int i = 0; i < 7; ++i) {
      ++sequence;
      ASSERT_TRUE(upload.Send(sequence, &layouts_[0], Batch(sequence)).ok());
    }
    took = absl::Now() - begin;
  }
  EXPECT_GE(took, absl::Milliseconds(200)) << "seven rows at 20 a second";
  EXPECT_TRUE(upload.Finish().ok());
}

// Two collectors that share jobs, and refuse what was not sent to the right one.
class ImportToClusterTest : public ImportUploadTest {
 protected:
  struct Member : v1::Cluster::Service {
    grpc::Status GetMembers(grpc::ServerContext*, const v1::GetMembersRequest* request,
                            v1::GetMembersResponse* response) override {
      EXPECT_FALSE(request->only_own()) << "it leaves out the other members";
      *response = members;
      return status;
    }
    v1::GetMembersResponse members;
    grpc::Status status;
  };

  ImportToClusterTest() {
    Join(&collector_, 0);
    Join(&second_, 1);
  }
  ~ImportToClusterTest() override {  // Before what they use.
    collector_.Stop();
    second_.Stop();
  }

  void Join(agent::FakeCollector* collector, uint32_t shard) {
    collector->Stop();
    for (const agent::FakeCollector* one : {&collector_, &second_}) {
      members_[shard].members.add_members()->set_address(one->address());
    }
    members_[shard].members.set_own_shard(shard);
    collector->more = &members_[shard];
    collector->greet = [shard](const v1::Hello& hello) {
      if (hello.shards() == 2 && hello.shard() == shard) return grpc::Status::OK;
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "it keeps another shard");
    };
    collector->Start();
  }

  agent::FakeCollector second_;
  Member members_[2];
};

TEST_F(ImportToClusterTest, GoesToTheMemberThatKeepsTheJob) {
  for (const std::string job : {"run", "hosts"}) {
    agent::FakeCollector& owner = ShardOfJob(job, 2) == 0 ? collector_ : second_;
    UploadOptions options = Options();
    options.job = job;
    Upload upload(options);
    const uint64_t before = owner.durable();
    ASSERT_TRUE(upload.Connect().ok()) << job;
    ASSERT_TRUE(SendAll(upload, before + 1, before + 20).ok()) << job;
    EXPECT_EQ(owner.durable(), before + 20) << job;
  }
  EXPECT_NE(ShardOfJob("run", 2), ShardOfJob("hosts", 2)) << "else this tests one of them";
}

TEST_F(ImportToClusterTest, SaysWhyItWasRefusedIfTheMembersAreNotTold) {
  members_[0].status = {grpc::StatusCode::PERMISSION_DENIED, "needs the role read"};
  UploadOptions options = Options();
  options.job = "run";
  Upload upload(options);
  const absl::Status status = upload.Connect();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("it keeps another shard"));
  EXPECT_THAT(status.message(), HasSubstr("needs the role read"));
}

}  // namespace
}  // namespace tacho::importer

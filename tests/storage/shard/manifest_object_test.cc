#include "storage/shard/manifest_object.h"

#include <string>

#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

class ManifestObjectTest : public ShardFixture,
                           public testing::WithParamInterface<BucketPersonality> {
 protected:
  ReadManifest Create() {
    auto created = Object().Create({.shard = kTestShard, .owner = "first"});
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? *std::move(created) : ReadManifest{};
  }
  static Manifest From(const ReadManifest& old, std::string owner) {
    Manifest next = old.manifest;
    next.owner = std::move(owner);
    return next;
  }
};

TEST_F(ManifestObjectTest, EachReplacementCountsOneUp) {
  EXPECT_EQ(Object().Read().status().code(), absl::StatusCode::kNotFound);
  const ReadManifest first = Create();
  EXPECT_EQ(first.manifest.version, 1u);
  const auto second = Object().Replace(first, From(first, "second"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->manifest.version, 2u);
  EXPECT_NE(second->manifest.nonce, first.manifest.nonce);
  EXPECT_EQ(Stored(), second->manifest);
}

TEST_F(ManifestObjectTest, WhoReadAnOlderVersionIsTold) {
  const ReadManifest first = Create();
  ASSERT_TRUE(Object().Replace(first, From(first, "second")).ok());
  const auto late = Object().Replace(first, From(first, "third"));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(late.status().message()).find("replaced by second"), std::string::npos);
  EXPECT_EQ(Object().Create({.shard = kTestShard}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Stored().owner, "second");
}

TEST_F(ManifestObjectTest, EveryFaultOfAWriteEndsInTheTruth) {
  for (const BucketFault fault :
       {BucketFault::kRefused, BucketFault::kAnswerLost, BucketFault::kTwice, BucketFault::kLate}) {
    bucket_.set_faults(nullptr);
    const auto read = Object().Read();
    const ReadManifest old = read.ok() ? *read : Create();
    Fail(Kind::kPutIf, fault);
    const auto next = Object().Replace(old, From(old, "next"));
    ASSERT_TRUE(next.ok()) << next.status();
    bucket_.DeliverLate();  // Its condition is not true any more.
    EXPECT_EQ(Stored(), next->manifest);
    EXPECT_EQ(next->manifest.version, old.manifest.version + 1);
  }
}

TEST_F(ManifestObjectTest, EveryFaultOfACreationEndsInTheTruth) {
  for (const BucketFault fault :
       {BucketFault::kRefused, BucketFault::kAnswerLost, BucketFault::kTwice, BucketFault::kLate}) {
    ASSERT_TRUE(bucket_.Delete(ManifestKey(kTestShard)).ok());
    Fail(Kind::kPutNew, fault);
    const ReadManifest created = Create();
    bucket_.DeliverLate();
    EXPECT_EQ(Stored(), created.manifest);
  }
}

TEST_F(ManifestObjectTest, WhoGivesUpMayHaveWritten) {
  const ReadManifest old = Create();
  give_up_after_ = 1;
  Fail(Kind::kPutIf, BucketFault::kLate);
  EXPECT_EQ(Object().Replace(old, From(old, "mine")).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Stored().owner, "first");
  bucket_.DeliverLate();
  EXPECT_EQ(Stored().owner, "mine");
}

TEST_F(ManifestObjectTest, ARefusalThatIsNoQuestionOfTimeIsReturned) {
  const ReadManifest old = Create();
  Fail(Kind::kPutIf, BucketFault::kForbidden);
  EXPECT_EQ(Object().Replace(old, From(old, "x")).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(retries_, 0);
}

TEST_F(ManifestObjectTest, DamageAndOtherShardsAreNamedWithTheKey) {
  ASSERT_TRUE(bucket_.Put(ManifestKey(kTestShard), "{").ok());
  auto read = Object().Read();
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(read.status().message().substr(0, 23), "v1/shards/0005/manifest");
  ASSERT_TRUE(bucket_.Put(ManifestKey(kTestShard), EncodeManifest({.shard = 6})).ok());
  read = Object().Read();
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ManifestObjectTest, WhatIsTooLargeToReadIsNotWritten) {
  const ReadManifest old = Create();
  Manifest huge = old.manifest;
  huge.positions.assign(kMaxManifestBytes, 'x');
  EXPECT_EQ(Object().Replace(old, huge).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Stored(), old.manifest);
}

// The rules that this class needs hold in three services, and a bucket that breaks them is why the
// probe exists.
TEST_P(ManifestObjectTest, OfManyThatReplaceOneVersionOneWins) {
  FakeBucket bucket(GetParam());
  const ManifestObject object({.bucket = &bucket,
                               .shard = kTestShard,
                               .random = [this] { return ++random_; },
                               .before_retry = [](int) { return absl::OkStatus(); }});
  const auto old = object.Create({.shard = kTestShard});
  ASSERT_TRUE(old.ok()) << old.status();
  int winners = 0;
  for (int i = 0; i < 5; ++i) winners += object.Replace(*old, old->manifest).ok();
  EXPECT_EQ(winners, 1);
}

INSTANTIATE_TEST_SUITE_P(Services, ManifestObjectTest,
                         testing::Values(BucketPersonality::kAws, BucketPersonality::kGcs,
                                         BucketPersonality::kRgw));

}  // namespace
}  // namespace tacho::storage

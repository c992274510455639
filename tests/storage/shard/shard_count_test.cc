#include "storage/shard/shard_count.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/shard/bucket_keys.h"
#include "tests/support/fake_bucket.h"

namespace tacho::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ShardCountTest : public testing::Test {
 protected:
  absl::Status Check(uint32_t shards) {
    return CheckShardCount(bucket_, shards, [](int) { return absl::OkStatus(); });
  }
  // Why a store is not let in.
  std::string Refused(uint32_t shards) {
    const absl::Status status = Check(shards);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  }

  FakeBucket bucket_;
};

TEST_F(ShardCountTest, TheFirstOfAClusterSaysItsSize) {
  EXPECT_TRUE(Check(3).ok());
  EXPECT_EQ(bucket_.contents().Body("v1/cluster"), R"({"kind":"cluster","format":1,"shards":3})");
  EXPECT_TRUE(Check(3).ok());
}

TEST_F(ShardCountTest, AStoreAloneLeavesNoTrace) {
  EXPECT_TRUE(Check(1).ok());
  EXPECT_THAT(bucket_.contents().Keys(), IsEmpty());
}

TEST_F(ShardCountTest, AnotherSizeIsRefused) {
  ASSERT_TRUE(Check(3).ok());
  EXPECT_THAT(Refused(4), AllOf(HasSubstr("a cluster of 3 collectors"), HasSubstr("names 4"),
                                HasSubstr("another bucket.url")));
  EXPECT_THAT(Refused(1), HasSubstr("this collector is in none"));
  EXPECT_EQ(*DecodeShardCount(*bucket_.contents().Body("v1/cluster")), 3u);
}

TEST_F(ShardCountTest, TheBucketOfAStoreAloneIsNoClusters) {
  ASSERT_TRUE(bucket_.Put(ManifestKey(0), "{}").ok());
  EXPECT_THAT(Refused(3), AllOf(HasSubstr("one collector with all jobs"),
                                HasSubstr("give the cluster another bucket.url")));
  EXPECT_THAT(bucket_.contents().Keys(), ElementsAre(ManifestKey(0)));
}

TEST_F(ShardCountTest, ALostAnswerIsFoundOut) {
  bool lost = false;
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != BucketRequest::Kind::kPutNew || lost) return BucketFault::kNone;
    lost = true;
    return BucketFault::kAnswerLost;
  });
  EXPECT_TRUE(Check(3).ok());
  EXPECT_TRUE(lost);
}

TEST_F(ShardCountTest, OfTwoThatBeginAtOnceOneIsRefused) {
  bool raced = false;
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind == BucketRequest::Kind::kPutNew && !raced) {
      raced = true;
      BucketRequest first = request;
      first.body = EncodeShardCount(2);
      bucket_.contents().Apply(first);
    }
    return BucketFault::kNone;
  });
  EXPECT_THAT(Refused(3), HasSubstr("a cluster of 2 collectors"));
}

TEST_F(ShardCountTest, WhatIsNoNumberIsNotTaken) {
  for (const char* text : {"", "3", "{}", R"({"kind":"cluster","format":1,"shards":1})",
                           R"({"kind":"cluster","format":1,"shards":10001})",
                           R"({"kind":"manifest","format":1,"shards":3})",
                           R"({"kind":"cluster","format":1,"shards":3,"more":1})"}) {
    EXPECT_EQ(DecodeShardCount(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(
      DecodeShardCount(R"({"kind":"cluster","format":2,"shards":3,"more":1})").status().code(),
      absl::StatusCode::kUnimplemented);
  ASSERT_TRUE(bucket_.Put("v1/cluster", "3").ok());
  EXPECT_THAT(std::string(Check(3).message()), HasSubstr("v1/cluster: "));
}

}  // namespace
}  // namespace tacho::storage

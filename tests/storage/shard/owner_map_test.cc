#include "storage/shard/owner_map.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/heartbeat.h"
#include "tests/support/fake_bucket.h"

namespace tacho::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class OwnerMapTest : public testing::Test {
 protected:
  // Another collector's view of the same object.
  OwnerMapObject View() {
    return {&bucket_, [this] { return ++nonce_; }};
  }

  uint64_t nonce_ = 0;
  FakeBucket bucket_;
};

TEST_F(OwnerMapTest, AnObjectThatIsNotThereIsAnEmptyMap) {
  OwnerMapObject view = View();
  ASSERT_TRUE(view.Read().ok());
  EXPECT_EQ(view.map(), OwnerMap());
}

TEST_F(OwnerMapTest, OthersSeeAChange) {
  OwnerMapObject one = View();
  OwnerMapObject other = View();
  ASSERT_TRUE(other.Read().ok());
  ASSERT_TRUE(one.Change(1, "", "a:1").ok());
  ASSERT_TRUE(one.Change(0, "", "b:1").ok());
  ASSERT_TRUE(other.Read().ok());
  EXPECT_THAT(other.map().owners, ElementsAre(Pair(0, "b:1"), Pair(1, "a:1")));
  EXPECT_EQ(other.map().version, 2u);
}

TEST_F(OwnerMapTest, OfTwoThatTakeAShardOneGetsIt) {
  OwnerMapObject one = View();
  OwnerMapObject other = View();
  ASSERT_TRUE(one.Change(0, "", "lost:1").ok());
  ASSERT_TRUE(other.Read().ok());
  ASSERT_TRUE(one.Change(0, "lost:1", "one:1").ok());
  const absl::Status late = other.Change(0, "lost:1", "other:1");
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(late.message(), HasSubstr("one:1"));
  EXPECT_THAT(other.map().owners, ElementsAre(Pair(0, "one:1")));
}

TEST_F(OwnerMapTest, AWriteThatComesBetweenIsKept) {
  OwnerMapObject one = View();
  OwnerMapObject other = View();
  ASSERT_TRUE(one.Change(0, "", "a:1").ok());
  bool raced = false;
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind == BucketRequest::Kind::kPutIf && !raced) {
      raced = true;
      BucketRequest first = request;
      first.kind = BucketRequest::Kind::kPut;
      first.body = EncodeOwnerMap({.version = 2, .nonce = 77, .owners = {{0, "a:1"}, {2, "c:1"}}});
      bucket_.contents().Apply(first);
    }
    return BucketFault::kNone;
  });
  ASSERT_TRUE(other.Change(1, "", "b:1").ok());
  EXPECT_THAT(other.map().owners, ElementsAre(Pair(0, "a:1"), Pair(1, "b:1"), Pair(2, "c:1")));
}

TEST_F(OwnerMapTest, ALostAnswerIsFoundOut) {
  for (const auto kind : {BucketRequest::Kind::kPutNew, BucketRequest::Kind::kPutIf}) {
    bool lost = false;
    bucket_.set_faults([&](const BucketRequest& request) {
      if (request.kind != kind || lost) return BucketFault::kNone;
      lost = true;
      return BucketFault::kAnswerLost;
    });
    OwnerMapObject view = View();
    EXPECT_TRUE(view.Change(kind == BucketRequest::Kind::kPutNew ? 0 : 1, "", "a:1").ok());
    EXPECT_TRUE(lost);
  }
}

TEST_F(OwnerMapTest, WhatIsNoMapIsNamed) {
  for (
      const std::string text :
      {"", "[]", "{}",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":[]})",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":{"x":"a:1"}})",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":{"00":"a:1"}})",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":{"1":1}})",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":{"1":"a","1":"b"}})",
       R"({"kind":"owners","format":1,"version":1,"nonce":"0000000000000001","owners":{},"more":1})"}) {
    ASSERT_TRUE(bucket_.Put(kOwnersKey, text).ok());
    OwnerMapObject view = View();
    const absl::Status status = view.Read();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(status.message(), HasSubstr(kOwnersKey));
  }
  ASSERT_TRUE(bucket_.Put(kOwnersKey, R"({"kind":"owners","format":2})").ok());
  OwnerMapObject view = View();
  EXPECT_EQ(view.Read().code(), absl::StatusCode::kUnimplemented);
}

TEST(HeartbeatTest, IsReadAsItWasWritten) {
  Heartbeat beat = {.address = "a.pods:7411", .life = UINT64_MAX, .count = 3, .version = "0.1.0"};
  EXPECT_EQ(*DecodeHeartbeat(EncodeHeartbeat(beat)), beat);
  beat.shard = 7;
  EXPECT_EQ(*DecodeHeartbeat(EncodeHeartbeat(beat)), beat);
  EXPECT_EQ(DecodeHeartbeat("{}").status().code(), absl::StatusCode::kDataLoss);
}

TEST(HeartbeatTest, EachAddressHasAKey) {
  EXPECT_EQ(HeartbeatKey("tacho-0.pods:7411"), "v1/members/tacho-0.pods_3a7411");
  EXPECT_EQ(HeartbeatKey("[::1]:7411"), "v1/members/_5b_3a_3a1_5d_3a7411");
  EXPECT_NE(HeartbeatKey("a_3a1"), HeartbeatKey("a:1"));
}

}  // namespace
}  // namespace tacho::storage

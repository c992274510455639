#include "storage/shard/takeover.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TakeoverTest : public ShardFixture {};

TEST_F(TakeoverTest, TheFirstOwnerOfAShardMakesItsManifest) {
  const auto claimed = ClaimShard(Object(), std::nullopt, "me");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->manifest.epoch, 1u);
  EXPECT_EQ(claimed->manifest.owner, "me");
  EXPECT_THAT(claimed->manifest.logs, ElementsAre(LogStart{1, 1}));
  EXPECT_EQ(Stored(), claimed->manifest);
  EXPECT_THAT(Replay(claimed->manifest), IsEmpty());
}

TEST_F(TakeoverTest, ANewOwnerFindsAllThatWasStoredAndStopsTheOldOne) {
  Claim(1, "old");
  ShardLog old(LogOptions(1));
  AppendStored(old, {"a", "b"});
  const ReadManifest claimed = Claim(7, "new");
  EXPECT_THAT(claimed.manifest.logs, ElementsAre(LogStart{1, 1}, LogStart{7, 1}));
  EXPECT_THAT(Replay(claimed.manifest), ElementsAre("a", "b"));
  ASSERT_EQ(sealed_.size(), 1u);
  EXPECT_EQ(sealed_[0].seal, 3u);
  ASSERT_TRUE(old.Append({"c"}, 0, 0).ok());
  EXPECT_EQ(old.SendOne(), ShardLog::Sent::kFenced);
  EXPECT_EQ(old.stored(), 2u);
  EXPECT_THAT(Replay(claimed.manifest), ElementsAre("a", "b")) << "it may be repeated";
}

TEST_F(TakeoverTest, AnEpochThatIsNotNewIsRefusedWithTheOwnersName) {
  Claim(4, "other");
  for (const uint64_t epoch : {1, 4}) {
    const auto claimed = ClaimShard(Object(), epoch, "me");
    EXPECT_EQ(claimed.status().code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(claimed.status().message()),
                HasSubstr("belongs to other since epoch 4"));
  }
  EXPECT_EQ(Stored().owner, "other");
}

TEST_F(TakeoverTest, AnOlderOwnersCommitDuringTheClaimIsKept) {
  const ReadManifest old = Claim(1, "old");
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != Kind::kPutIf) return BucketFault::kNone;
    bucket_.set_faults(nullptr);
    Manifest commit = old.manifest;
    commit.logs = {{1, 5}};
    EXPECT_TRUE(Object().Replace(old, commit).ok());
    return BucketFault::kNone;
  });
  EXPECT_THAT(Claim(2).manifest.logs, ElementsAre(LogStart{1, 5}, LogStart{2, 1}));
}

TEST_F(TakeoverTest, OfTwoWhoRaceTheHigherEpochStays) {
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != Kind::kPutNew) return BucketFault::kNone;
    bucket_.set_faults(nullptr);
    Claim(3, "quicker");
    return BucketFault::kNone;
  });
  EXPECT_EQ(ClaimShard(Object(), 2, "slow").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Stored().owner, "quicker");
}

TEST_F(TakeoverTest, ASegmentThatComesWhileItsLogIsSealedIsReplayed) {
  Claim(1);
  ShardLog old(LogOptions(1));
  ASSERT_TRUE(old.Append({"late"}, 0, 0).ok());
  const ReadManifest claimed = Claim(2);
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != Kind::kPutNew) return BucketFault::kNone;
    bucket_.set_faults(nullptr);
    EXPECT_EQ(old.SendOne(), ShardLog::Sent::kStored);
    return BucketFault::kNone;
  });
  EXPECT_THAT(Replay(claimed.manifest), ElementsAre("late"));
  EXPECT_EQ(sealed_.at(0).seal, 2u);
}

TEST_F(TakeoverTest, FaultsWhileSealingChangeNothing) {
  Claim(1);
  ShardLog old(LogOptions(1));
  AppendStored(old, {"a"});
  const ReadManifest claimed = Claim(2);
  for (const Kind kind : {Kind::kGet, Kind::kPutNew}) {
    for (const BucketFault fault : {BucketFault::kRefused, BucketFault::kAnswerLost,
                                    BucketFault::kTwice, BucketFault::kLate}) {
      ASSERT_TRUE(bucket_.Delete(SegmentKey(kTestShard, 1, 2)).ok());
      Fail(kind, fault, 3);
      EXPECT_THAT(Replay(claimed.manifest), ElementsAre("a"));
      EXPECT_EQ(sealed_.at(0).seal, 2u);
      EXPECT_TRUE(Exists(SegmentKey(kTestShard, 1, 2))) << "whatever the answers were";
      bucket_.DeliverLate();
    }
  }
}

TEST_F(TakeoverTest, ATakeoverThatDiedLeavesOneMoreLogToSeal) {
  Claim(1);
  ShardLog first(LogOptions(1));
  AppendStored(first, {"a"});
  Claim(2);  // And then nothing.
  const ReadManifest third = Claim(3);
  EXPECT_THAT(third.manifest.logs, ElementsAre(LogStart{1, 1}, LogStart{2, 1}, LogStart{3, 1}));
  EXPECT_THAT(Replay(third.manifest), ElementsAre("a"));
  ShardLog second(LogOptions(2));
  ASSERT_TRUE(second.Append({"x"}, 0, 0).ok());
  EXPECT_EQ(second.SendOne(), ShardLog::Sent::kFenced);
}

TEST_F(TakeoverTest, DamageInALogStopsTheTakeoverAndNamesTheKey) {
  Claim(1);
  ASSERT_TRUE(bucket_.PutNew(SegmentKey(kTestShard, 1, 1), "rubbish").ok());
  const auto sealed =
      SealOlderLogs(Object(), Claim(2).manifest, [](const Segment&) { return absl::OkStatus(); });
  EXPECT_EQ(sealed.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(sealed.status().message()), HasSubstr(SegmentKey(kTestShard, 1, 1)));
}

TEST_F(TakeoverTest, AVisitorThatFailsEndsIt) {
  Claim(1);
  ShardLog old(LogOptions(1));
  AppendStored(old, {"a"});
  const auto sealed = SealOlderLogs(Object(), Claim(2).manifest, [](const Segment&) {
    return absl::ResourceExhaustedError("the disk is full");
  });
  EXPECT_EQ(sealed.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tacho::storage

#include "storage/shard/garbage.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

class GarbageTest : public ShardFixture {
 protected:
  static absl::Status NoRetry(int) { return absl::UnavailableError("no second try"); }

  std::string Put(const std::string& key, const std::string& body = "x") {
    EXPECT_TRUE(bucket_.Put(key, body).ok());
    return key;
  }
  std::vector<std::string> Orphans(const std::vector<int64_t>& saved_days = {}) {
    const auto found = FindOrphans(bucket_, Stored(), saved_days, NoRetry);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::vector<std::string>();
  }
};

TEST_F(GarbageTest, FilesOfOlderOwnersThatNobodyNamesAreOrphans) {
  const std::string state = Put(StateFileKey(kTestShard, 1, "a"));
  const std::string block = Put(BlockKey(kTestShard, 3, 1, 1));
  const std::string list = Put(BlockListKey(kTestShard, 3, 1, 2));
  Put(StateFileKey(kTestShard, 2, "upload-under-way"));
  Put(StateFileKey(kTestShard + 1, 1, "of-another-shard"));
  Put("v1/shards/0005/readme");
  Claim(2);
  EXPECT_THAT(Orphans(), UnorderedElementsAre(state, block, list));
}

TEST_F(GarbageTest, WhatAManifestNamesIsNone) {
  const Block open{.file = {.key = Put(BlockKey(kTestShard, 3, 1, 1))}};
  const Block closed{.file = {.key = Put(BlockKey(kTestShard, 2, 1, 2))}};
  const Block saved{.file = {.key = Put(BlockKey(kTestShard, 2, 1, 3))}};
  Manifest manifest{.shard = kTestShard};
  manifest.state = {{.file = {.key = Put(StateFileKey(kTestShard, 1, "a"))}}};
  manifest.open_days[3] = {open};
  manifest.closed_days[2] = {.key =
                                 Put(BlockListKey(kTestShard, 2, 1, 4), EncodeBlockList({closed}))};
  ASSERT_TRUE(Object().Create(manifest).ok());
  Manifest old{.shard = kTestShard};
  old.closed_days[2] = {.key = Put(BlockListKey(kTestShard, 2, 1, 5), EncodeBlockList({saved}))};
  Put(SavedManifestKey(kTestShard, 7), EncodeManifest(old));
  Claim(2);
  EXPECT_THAT(Orphans({6, 7}), IsEmpty());
  EXPECT_THAT(Orphans(), UnorderedElementsAre(saved.file.key, BlockListKey(kTestShard, 2, 1, 5)))
      << "nobody wants to restore that day any more";
}

TEST_F(GarbageTest, OfAnOlderLogSegmentsAreGarbageAndTheSealIsNot) {
  Claim(1);
  ShardLog first(LogOptions(1));
  AppendStored(first, {"a", "b"});
  const ReadManifest second = Claim(2);
  Replay(second.manifest);
  EXPECT_THAT(Orphans(), IsEmpty()) << "they are replayed";
  ShardLog log(LogOptions(2));
  ASSERT_TRUE(
      CommitManifest(Object(), log,
                     {.replay_from = {2, 1}, .change = [](Manifest*) { return absl::OkStatus(); }})
          .ok());
  // A request that was held up on the way arrives behind the seal.
  Put(SegmentKey(kTestShard, 1, 5), EncodeSegment({.place = {kTestShard, 1, 5}}));
  EXPECT_THAT(Orphans(),
              UnorderedElementsAre(SegmentKey(kTestShard, 1, 1), SegmentKey(kTestShard, 1, 2),
                                   SegmentKey(kTestShard, 1, 5)));
  EXPECT_EQ(DeleteObjects(bucket_, Orphans()), 3u);
  EXPECT_TRUE(Exists(SegmentKey(kTestShard, 1, 3)));
  EXPECT_THAT(Orphans(), IsEmpty());
}

TEST_F(GarbageTest, NothingIsGarbageWhileAListCannotBeRead) {
  Put(StateFileKey(kTestShard, 1, "a"));
  Manifest manifest{.shard = kTestShard};
  manifest.closed_days[2] = {.key = Put(BlockListKey(kTestShard, 2, 1, 4), "rubbish")};
  ASSERT_TRUE(Object().Create(manifest).ok());
  EXPECT_EQ(FindOrphans(bucket_, Claim(2).manifest, {}, NoRetry).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(GarbageTest, AllPagesOfAListAreRead) {
  bucket_.contents().set_page_size(2);
  for (uint64_t number = 1; number <= 7; ++number) Put(BlockKey(kTestShard, 3, 1, number));
  Claim(2);
  EXPECT_EQ(Orphans().size(), 7u);
}

TEST_F(GarbageTest, WhatCannotBeDeletedIsNotCounted) {
  Fail(Kind::kDelete, BucketFault::kRefused);
  EXPECT_EQ(DeleteObjects(bucket_, {Put("v1/a"), Put("v1/b")}), 1u);
}

}  // namespace
}  // namespace tacho::storage

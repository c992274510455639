#include "storage/shard/bucket_keys.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

using testing::Eq;
using testing::Optional;

TEST(BucketKeysTest, KeysAreThoseOfTheDocument) {
  EXPECT_EQ(ManifestKey(7), "v1/shards/0007/manifest");
  EXPECT_EQ(SegmentKey(7, 3, 12), "v1/shards/0007/log/0000000000000003/0000000000000012");
  EXPECT_EQ(StateFileKey(7, 3, "12.index"), "v1/shards/0007/state/0000000000000003-12.index.sst");
  EXPECT_EQ(BlockKey(7, 20782, 3, 5),
            "v1/shards/0007/days/20782/0000000000000003-0000000000000005.sst");
  EXPECT_EQ(BlockListKey(7, -2, 3, 5),
            "v1/shards/0007/days/-00002/0000000000000003-0000000000000005.list");
  EXPECT_EQ(SavedManifestKey(7, 20782), "v1/shards/0007/saved/20782");
}

TEST(BucketKeysTest, EachKeyIsReadAsWhatItWasBuiltFrom) {
  const uint64_t most = kMaxKeyNumber;
  const ObjectName names[] = {
      {.kind = ObjectKind::kManifest, .shard = kMaxShard},
      {.kind = ObjectKind::kSavedManifest, .shard = 1, .day = kMaxKeyDay},
      {.kind = ObjectKind::kSegment, .shard = 0, .epoch = most, .number = most},
      {.kind = ObjectKind::kStateFile, .shard = 2, .epoch = 4, .file = "a-b.c_D"},
      {.kind = ObjectKind::kBlock, .shard = 2, .epoch = 4, .number = 6, .day = -kMaxKeyDay},
      {.kind = ObjectKind::kBlockList, .shard = 2, .epoch = 4, .number = 6, .day = 0},
  };
  EXPECT_THAT(ParseObjectKey(ManifestKey(kMaxShard)), Optional(Eq(names[0])));
  EXPECT_THAT(ParseObjectKey(SavedManifestKey(1, kMaxKeyDay)), Optional(Eq(names[1])));
  EXPECT_THAT(ParseObjectKey(SegmentKey(0, most, most)), Optional(Eq(names[2])));
  EXPECT_THAT(ParseObjectKey(StateFileKey(2, 4, "a-b.c_D")), Optional(Eq(names[3])));
  EXPECT_THAT(ParseObjectKey(BlockKey(2, -kMaxKeyDay, 4, 6)), Optional(Eq(names[4])));
  EXPECT_THAT(ParseObjectKey(BlockListKey(2, 0, 4, 6)), Optional(Eq(names[5])));
}

TEST(BucketKeysTest, NothingElseIsAName) {
  for (const absl::string_view key : {
           "",
           "v1",
           "v1/shards/0007",
           "v1/shards/0007/",
           "v1/shards/7/manifest",
           "v1/shards/00007/manifest",
           "v1/shards/99999/manifest",
           "v2/shards/0007/manifest",
           "v1/shards/0007/manifest/",
           "v1/shards/0007/log/3/12",
           "v1/shards/0007/log/0000000000000003/",
           "v1/shards/-001/manifest",
           "v1/shards/0007/log/0000000000000003/00000000000000012",
           "v1/shards/0007/log/0000000000000003/+000000000000012",
           "v1/shards/0007/state/0000000000000003-.sst",
           "v1/shards/0007/state/0000000000000003-a/b.sst",
           "v1/shards/0007/state/3-a.sst",
           "v1/shards/0007/state/0000000000000003-a b.sst",
           "v1/shards/0007/days/2/0000000000000003-0000000000000005.sst",
           "v1/shards/0007/days/-00000/0000000000000003-0000000000000005.sst",
           "v1/shards/0007/days/00002/0000000000000003-0000000000000005.tmp",
           "v1/shards/0007/saved/900000",
           "probe/0123",
       }) {
    EXPECT_EQ(ParseObjectKey(key), std::nullopt) << key;
  }
}

}  // namespace
}  // namespace tacho::storage

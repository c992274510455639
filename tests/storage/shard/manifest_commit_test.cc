#include "storage/shard/manifest_commit.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ManifestCommitTest : public ShardFixture {
 protected:
  ManifestCommitTest() : log_(LogOptions(1)) { Claim(1); }

  static StoredFile StateFileOf(uint64_t epoch, absl::string_view name) {
    return {.key = StateFileKey(kTestShard, epoch, name), .bytes = 1};
  }
  static Block BlockOf(uint64_t number) {
    return {.file = {.key = BlockKey(kTestShard, 9, 1, number)}};
  }

  absl::StatusOr<Committed> Commit(LogStart from, absl::string_view state = "s") {
    return CommitManifest(
        Object(), log_, {.replay_from = from, .sealed = sealed_, .change = [&](Manifest* manifest) {
                           manifest->state = {{.file = StateFileOf(log_.epoch(), state)}};
                           return absl::OkStatus();
                         }});
  }

  ShardLog log_;
};

TEST_F(ManifestCommitTest, WhatIsCoveredAndWhatIsReplacedBecomesGarbage) {
  AppendStored(log_, {"a", "b", "c"});
  const auto first = Commit({1, 3}, "one");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->garbage,
              UnorderedElementsAre(SegmentKey(kTestShard, 1, 1), SegmentKey(kTestShard, 1, 2)));
  EXPECT_THAT(Stored().logs, ElementsAre(LogStart{1, 3}));
  const auto second = Commit({1, 4}, "two");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->garbage, UnorderedElementsAre(SegmentKey(kTestShard, 1, 3),
                                                    StateFileKey(kTestShard, 1, "one")));
}

TEST_F(ManifestCommitTest, OfAnOlderLogTheSealStays) {
  AppendStored(log_, {"a", "b"});
  Replay(Claim(2).manifest);
  ShardLog log(LogOptions(2));
  const auto half = CommitManifest(
      Object(), log, {.replay_from = {1, 2}, .sealed = sealed_, .change = [](Manifest*) {
                        return absl::OkStatus();
                      }});
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_THAT(half->written.manifest.logs, ElementsAre(LogStart{1, 2}, LogStart{2, 1}));
  EXPECT_THAT(half->garbage, ElementsAre(SegmentKey(kTestShard, 1, 1)));
  const auto all = CommitManifest(
      Object(), log, {.replay_from = {2, 1}, .sealed = sealed_, .change = [](Manifest*) {
                        return absl::OkStatus();
                      }});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->written.manifest.logs, ElementsAre(LogStart{2, 1}));
  EXPECT_THAT(all->garbage, ElementsAre(SegmentKey(kTestShard, 1, 2)));
  EXPECT_TRUE(Exists(SegmentKey(kTestShard, 1, 3))) << "the seal";
}

TEST_F(ManifestCommitTest, AStartNeverMovesBack) {
  AppendStored(log_, {"a", "b"});
  ASSERT_TRUE(Commit({1, 3}).ok());
  const auto back = Commit({1, 1});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->written.manifest.logs, ElementsAre(LogStart{1, 3}));
  EXPECT_THAT(back->garbage, IsEmpty());
}

TEST_F(ManifestCommitTest, WhatIsNotStoredCannotBeCommitted) {
  AppendStored(log_, {"a"});
  ASSERT_TRUE(log_.Append({"b"}, 0, 0).ok());
  EXPECT_EQ(Commit({1, 3}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Commit({9, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  CommitRequest request{.replay_from = {1, 1}, .stored_through = 2, .change = [](Manifest*) {
                          return absl::OkStatus();
                        }};
  EXPECT_EQ(CommitManifest(Object(), log_, request).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Stored().version, 1u);
  ASSERT_EQ(log_.SendOne(), ShardLog::Sent::kStored);
  EXPECT_TRUE(CommitManifest(Object(), log_, request).ok());
}

TEST_F(ManifestCommitTest, AnOlderOwnerCannotCommitAndIsFenced) {
  AppendStored(log_, {"a"});
  Claim(2, "new");
  const auto commit = Commit({1, 2});
  EXPECT_EQ(commit.status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(log_.fenced());
  EXPECT_THAT(Stored().state, IsEmpty());
}

TEST_F(ManifestCommitTest, AClaimBetweenReadingAndWritingWins) {
  AppendStored(log_, {"a"});
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != Kind::kPutIf) return BucketFault::kNone;
    bucket_.set_faults(nullptr);
    Claim(2, "new");
    return BucketFault::kNone;
  });
  EXPECT_EQ(Commit({1, 2}).status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Stored().logs, ElementsAre(LogStart{1, 1}, LogStart{2, 1}));
}

TEST_F(ManifestCommitTest, ACommitOfUnknownOutcomeTellsNoGarbage) {
  AppendStored(log_, {"a"});
  give_up_after_ = 1;
  Fail(Kind::kPutIf, BucketFault::kLate);
  EXPECT_EQ(Commit({1, 2}, "one").status().code(), absl::StatusCode::kCancelled);
  give_up_after_ = 0;
  // The one before happens now, between reading and writing.
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind != Kind::kPutIf) return BucketFault::kNone;
    bucket_.set_faults(nullptr);
    bucket_.DeliverLate();
    return BucketFault::kNone;
  });
  const auto second = Commit({1, 2}, "two");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->garbage, ElementsAre(StateFileKey(kTestShard, 1, "one")));
  EXPECT_EQ(second->written.manifest.version, 3u);
}

TEST_F(ManifestCommitTest, AChangeThatFailsIsReturnedAndSendsNothing) {
  const auto commit =
      CommitManifest(Object(), log_, {.replay_from = {1, 1}, .change = [](Manifest*) {
                                        return absl::ResourceExhaustedError("no");
                                      }});
  EXPECT_EQ(commit.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bucket_.requests(Kind::kPutIf), 0u);
}

class ClosedDaysTest : public ManifestCommitTest {
 protected:
  StoredFile PutList(uint64_t number, const std::vector<Block>& blocks) {
    StoredFile list{.key = BlockListKey(kTestShard, 9, 1, number)};
    EXPECT_TRUE(bucket_.Put(list.key, EncodeBlockList(blocks)).ok());
    return list;
  }
  std::vector<std::string> Change(const std::function<void(Manifest*)>& change) {
    const auto commit =
        CommitManifest(Object(), log_, {.replay_from = {1, 1}, .change = [&](Manifest* manifest) {
                                          change(manifest);
                                          return absl::OkStatus();
                                        }});
    EXPECT_TRUE(commit.ok()) << commit.status();
    return commit.ok() ? commit->garbage : std::vector<std::string>();
  }
};

TEST_F(ClosedDaysTest, BlocksThatTheListNamesAreKept) {
  Change([](Manifest* m) { m->open_days[9] = {BlockOf(1), BlockOf(2)}; });
  const StoredFile list = PutList(3, {BlockOf(2)});
  EXPECT_THAT(Change([&](Manifest* m) {
                m->open_days.clear();
                m->closed_days[9] = list;
              }),
              ElementsAre(BlockOf(1).file.key));
}

TEST_F(ClosedDaysTest, WithADayItsListAndItsBlocksGo) {
  const StoredFile list = PutList(3, {BlockOf(2)});
  Change([&](Manifest* m) { m->closed_days[9] = list; });
  EXPECT_THAT(Change([&](Manifest* m) { m->closed_days.clear(); }),
              UnorderedElementsAre(list.key, BlockOf(2).file.key));
}

TEST_F(ClosedDaysTest, AListThatCannotBeReadProtectsTheBlocksOfItsDay) {
  Change([](Manifest* m) { m->open_days[9] = {BlockOf(1)}; });
  EXPECT_THAT(Change([&](Manifest* m) {
                m->open_days.clear();
                m->closed_days[9] = {.key = BlockListKey(kTestShard, 9, 1, 8)};
              }),
              IsEmpty());
}

}  // namespace
}  // namespace tacho::storage

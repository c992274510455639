// Acknowledgements that wait for the bucket: what was acknowledged is there bit for bit, and once,
// after the disk is gone, whatever the bucket does meanwhile.
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "rocksdb/env.h"
#include "storage/codec/keys.h"
#include "storage/db/crash_point.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "storage/shard/segment.h"
#include "tests/storage/shared_store_fixture.h"

namespace tacho::storage {
namespace {

using SharedStoreTest = SharedStoreFixture;

// The contents of the store's files, by name.
std::map<std::string, std::string> FilesOf(rocksdb::Env* disk) {
  std::map<std::string, std::string> files;
  std::vector<std::string> names;
  EXPECT_TRUE(disk->GetChildren("/store", &names).ok());
  for (const std::string& name : names) {
    std::string bytes;
    if (!rocksdb::ReadFileToString(disk, "/store/" + name, &bytes).ok()) continue;
    files[name] = std::move(bytes);
  }
  return files;
}

TEST_F(SharedStoreTest, WhatIsAcknowledgedIsThereAfterTheDiskIsLost) {
  Open();
  SendAll(1, 30);
  const std::string all = Everything();
  EXPECT_EQ(Acknowledged(), 30u);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_TRUE(Logged("the store is restored"));
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Samples(), 30u * 20);
  EXPECT_EQ(Acknowledged(), 30u);
  // A repeat is not stored again, and new rows go on.
  ASSERT_TRUE(Send(30).ok());
  EXPECT_EQ(Everything(), all);
  SendAll(31, 33);
  EXPECT_EQ(Samples(), 33u * 20);
}

TEST_F(SharedStoreTest, AStoreThatWasClosedInOrderIsRestoredFromWhatCameAfterwards) {
  Open();
  SendAll(1, 10);
  Open();  // It closes first, and its journal is empty then.
  SendAll(11, 15);
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 15u);
}

TEST_F(SharedStoreTest, AnExportThatAKillHasCutShortIsRemoved) {
  ASSERT_TRUE(options_.env->CreateDirIfMissing(options_.path).ok());
  const std::string left = options_.path + "/bucket-export.tmp";
  ASSERT_TRUE(options_.env->CreateDir(left).ok());
  ASSERT_TRUE(
      rocksdb::WriteStringToFile(options_.env, "half a table", left + "/000012.sst", true).ok());
  Open();
  EXPECT_TRUE(options_.env->FileExists(left).IsNotFound());
}

TEST_F(SharedStoreTest, ManyLossesWithSealsAndCommitsInBetweenLoseNothing) {
  Open();
  uint64_t sequence = 0;
  for (int life = 0; life < 8; ++life) {
    for (int part = 0; part < 4; ++part) {
      SendAll(sequence + 1, sequence + 5);
      sequence += 5;
      if ((life + part) % 2 == 0) {
        ASSERT_TRUE(store_->Seal().ok());
      }
      if ((life * 3 + part) % 5 < 2) {
        const absl::Status committed = store_->CommitShared();
        ASSERT_TRUE(committed.ok()) << committed;
      }
    }
    const std::string all = Everything();
    Die();
    if (life % 3 != 2) TakeNewDisk();  // Else the same disk again.
    Open();
    ASSERT_EQ(Everything(), all) << "life " << life;
    ASSERT_EQ(Samples(), sequence * 20) << "life " << life;
    ASSERT_EQ(Acknowledged(), sequence) << "life " << life;
  }
}

TEST_F(SharedStoreTest, RowsAreSeenBeforeAndAcknowledgedAfterTheBucketHasThem) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("job", {"loss", "rate"}, 1));
  absl::Notification done;
  absl::Status ended;
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{absl::ToUnixNanos(now_)}, std::vector<int64_t>{1},
                      std::vector<double>{1, 2}},
                     [&](const absl::Status& status) {
                       ended = status;
                       done.Notify();
                     });
  while (Samples() != 3 * 20 + 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(done.HasBeenNotified());
  EXPECT_EQ(Acknowledged(), 3u);
  EXPECT_GT(store_->Shared().unshipped_bytes, 0u);
  Refuse(nullptr);
  done.WaitForNotification();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(Acknowledged(), 4u);
  EXPECT_EQ(store_->Shared().unshipped_bytes, 0u);
}

TEST_F(SharedStoreTest, WhatWaitsForTheBucketCountsWithItsRows) {
  Open();
  SendAll(1, 1);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("job", {"loss"}, 1));
  // Rows are handed on to those who watch them.
  const auto watching = store_->Subscribe({.job = "job", .buffer_bytes = 1 << 20}, nullptr);
  std::vector<int64_t> times(500);
  std::vector<int64_t> steps(times.size());
  std::vector<double> values(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    times[i] = absl::ToUnixNanos(now_) + static_cast<int64_t>(i);
    steps[i] = static_cast<int64_t>(i);
    values[i] = std::sin(static_cast<double>(i));
  }
  absl::Notification done;
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 2}, layout,
                     {times, steps, values}, [&](const absl::Status&) { done.Notify(); });
  while (store_->queued_bytes() > 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(done.HasBeenNotified());
  EXPECT_GT(store_->Shared().unshipped_bytes, values.size() * sizeof(double) / 2);
  Refuse(nullptr);
  done.WaitForNotification();
  EXPECT_EQ(store_->Shared().unshipped_bytes, 0u);
}

TEST_F(SharedStoreTest, WhatWasOnlyOnTheLostDiskComesAgain) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("other", {"x"}));
  std::atomic<bool> acknowledged = false;
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{1}, std::vector<int64_t>{1}, std::vector<double>{1}},
                     [&](const absl::Status& status) { acknowledged = status.ok(); });
  while (store_->Shared().unshipped_bytes == 0) absl::SleepFor(absl::Milliseconds(1));
  Die();
  EXPECT_FALSE(acknowledged);
  TakeNewDisk();
  Open();
  EXPECT_EQ(Acknowledged(), 3u);
  SendAll(4, 5);
  EXPECT_EQ(Samples(), 5u * 20);
}

TEST_F(SharedStoreTest, TheSameDiskKeepsWhatTheBucketDidNotHave) {
  Open();
  SendAll(1, 3);
  LoseSegments();
  const LayoutPtr layout = Register(Definition("job", {"loss", "rate"}, 7));
  store_->AppendRows({.agent_id = "agent", .generation = 1, .sequence = 4}, layout,
                     {std::vector<int64_t>{1}, std::vector<int64_t>{1}, std::vector<double>{1, 2}},
                     [](const absl::Status&) {});
  while (store_->Shared().unshipped_bytes == 0) absl::SleepFor(absl::Milliseconds(1));
  Die();
  Open();
  EXPECT_FALSE(Logged("restored"));
  EXPECT_EQ(Acknowledged(), 4u) << "the copy at the start has it";
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Samples(), 3u * 20 + 1);
}

TEST_F(SharedStoreTest, EntriesThatWereSealedAndNotTrimmedAreNotNeededAgain) {
  // The disk as a kill leaves it right after the columns were written.
  disks_.push_back(std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
  rocksdb::Env* const killed = disks_.back().get();
  rocksdb::Env* const first = options_.env;
  options_.at_point = [this, first, killed](absl::string_view point) {
    if (point != crash_point::kSealWritten || options_.env != first) return;
    // Nothing more reaches the bucket, either.
    Refuse([](absl::string_view) { return absl::PermissionDeniedError("dead"); });
    std::map<std::string, std::string> files = FilesOf(first);
    // Other threads may write meanwhile: two equal looks are what there was at one moment.
    for (auto again = FilesOf(first); again != files; again = FilesOf(first)) files = again;
    ASSERT_TRUE(killed->CreateDirIfMissing("/store").ok());
    for (const auto& [name, bytes] : files) {
      ASSERT_TRUE(rocksdb::WriteStringToFile(killed, bytes, "/store/" + name).ok());
    }
  };
  Open();
  SendAll(1, 6);
  store_->Seal().IgnoreError();
  Die();
  ASSERT_TRUE(killed->FileExists("/store/CURRENT").ok());
  options_.env = killed;
  OpenPieces();
  Open();
  EXPECT_FALSE(Logged(".fenced-")) << "the disk was kept";
  SendAll(7, 8);
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 8u);
}

TEST_F(SharedStoreTest, AnOldCopyOfTheDiskIsMovedAside) {
  Open();
  SendAll(1, 3);
  Die();
  rocksdb::Env* const old_disk = options_.env;
  TakeNewDisk();
  Open();
  SendAll(4, 6);
  const std::string all = Everything();
  Die();
  options_.env = old_disk;
  OpenPieces();
  Open();
  EXPECT_TRUE(Logged(".fenced-1"));
  EXPECT_TRUE(old_disk->FileExists("/store/.fenced-1/CURRENT").ok());
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 6u);
}

TEST_F(SharedStoreTest, AFencedOwnerAcknowledgesNothing) {
  Open();
  SendAll(1, 3);
  std::unique_ptr<Store> zombie = std::move(store_);
  std::unique_ptr<PieceCache> pieces = std::move(pieces_);
  absl::Status told;
  // Another machine takes the shard.
  disks_.push_back(std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
  options_.env = disks_.back().get();
  OpenPieces();
  Open();
  std::unique_ptr<Store> owner = std::move(store_);
  store_ = std::move(zombie);
  for (uint64_t sequence = 4; sequence < 8; ++sequence) {
    const absl::Status sent = Send(sequence);
    EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
    EXPECT_THAT(std::string(sent.message()), testing::HasSubstr("another collector"));
  }
  EXPECT_EQ(Acknowledged(), 3u);
  EXPECT_TRUE(store_->Shared().fenced);
  store_ = std::move(owner);
  EXPECT_EQ(Acknowledged(), 3u);
  SendAll(4, 5);
  EXPECT_EQ(Samples(), 5u * 20);
}

TEST_F(SharedStoreTest, UnknownOutcomesAcknowledgeWhatIsThere) {
  Open();
  std::atomic<int> calls = 0;
  Refuse([&](absl::string_view call) {
    return (call == "new" && ++calls % 2 == 0) ? absl::UnavailableError("no answer")
                                               : absl::OkStatus();
  });
  SendAll(1, 10);
  const std::string all = Everything();
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
}

TEST_F(SharedStoreTest, AStoreThatWasThereBeforeIsCopiedAtTheStart) {
  options_.shared.on = false;
  options_.history = {};
  Open();
  SendAll(1, 10);
  const std::string all = Everything();
  ASSERT_TRUE(store_->Close().ok());
  store_.reset();
  options_.shared.on = true;
  OpenPieces();
  Open();
  EXPECT_EQ(Everything(), all);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(Acknowledged(), 10u);
}

TEST_F(SharedStoreTest, ClosedDaysAreReadFromTheBucketAfterARestore) {
  Open();
  SendAll(1, 9);
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Hours(48);
  SendAll(10, 12);
  const absl::Status moved = store_->MoveHistory();
  ASSERT_TRUE(moved.ok()) << moved;
  const std::string all = Everything();
  ASSERT_TRUE(store_->CommitShared().ok());
  const Manifest manifest = InBucket();
  EXPECT_EQ(manifest.closed_days.size(), 1u);
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
  EXPECT_EQ(store_->Stats().partitions, 0u) << "the closed day is only in the bucket";
}

// A table of the day is named by a manifest, then by none because the day is closed, then again.
TEST_F(SharedStoreTest, LateRowsOfAClosedDayAreCopiedAndStayInTheBucket) {
  Open();
  SendAll(1, 9);
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const absl::Time first_day = now_;
  now_ += absl::Hours(48);
  SendAll(10, 12);
  ASSERT_TRUE(store_->MoveHistory().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const absl::Time later = now_;
  now_ = first_day;
  SendAll(13, 15);
  now_ = later;
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const std::string all = Everything();
  now_ += absl::Minutes(90);
  store_->MoveHistory().IgnoreError();  // Deletes what nobody needs.
  Die();
  TakeNewDisk();
  Open();
  EXPECT_EQ(Everything(), all);
}

TEST_F(SharedStoreTest, AnotherStoresBucketIsLeftAlone) {
  Open();
  SendAll(1, 3);
  ASSERT_TRUE(store_->Close().ok());
  TakeNewDisk();
  options_.shared.on = false;
  options_.history = {};
  Open();
  SendAll(1, 1);
  ASSERT_TRUE(store_->Close().ok());
  options_.shared.on = true;
  OpenPieces();
  const absl::Status refused = TryOpen();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(InBucket().epoch, 1u);
}

TEST_F(SharedStoreTest, EachStoreOfAClusterHasItsShard) {
  for (const uint32_t shard : {0u, 2u}) {
    TakeNewDisk();
    options_.history.shard = shard;
    options_.history.shards = 3;
    Open();
    SendAll(1, 2 + shard);
    ASSERT_TRUE(store_->Close().ok());
    EXPECT_TRUE(bucket_.Objects().contains(ManifestKey(shard)));
  }
  EXPECT_FALSE(bucket_.Objects().contains(ManifestKey(1)));

  // The disk is gone; what comes back is that shard's alone.
  TakeNewDisk();
  options_.history.shard = 2;
  options_.history.shards = 3;
  Open();
  EXPECT_EQ(Acknowledged(), 4u);
}

TEST_F(SharedStoreTest, AClusterOfAnotherSizeIsNotOpened) {
  options_.history.shards = 3;
  Open();
  ASSERT_TRUE(store_->Close().ok());
  for (const uint32_t shards : {1u, 2u, 4u}) {
    TakeNewDisk();
    options_.history.shards = shards;
    EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen())) << shards;
  }
  // Nor is one whose list was lost, on its own disk.
  options_.history.shards = 3;
  Open();
  ASSERT_TRUE(store_->Close().ok());
  options_.history.shards = 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen()));
  EXPECT_EQ(InBucket().epoch, 2u);
}

TEST_F(SharedStoreTest, AStoreWithAllJobsDoesNotBecomeAMember) {
  Open();
  SendAll(1, 1);
  ASSERT_TRUE(store_->Close().ok());
  options_.history.shards = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen()));
  EXPECT_EQ(InBucket().epoch, 1u);
}

TEST_F(SharedStoreTest, SegmentsHaveNoSealedPositionsAndTheManifestTrimsThem) {
  Open();
  SendAll(1, 6);
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->CommitShared().ok());
  const Manifest manifest = InBucket();
  ASSERT_EQ(manifest.logs.size(), 1u);
  EXPECT_GT(manifest.logs[0].first, 1u) << "the log was trimmed";
  int segments = 0;
  for (const auto& [key, body] : bucket_.Objects()) {
    const auto name = ParseObjectKey(key);
    if (!name.has_value() || name->kind != ObjectKind::kSegment) continue;
    ++segments;
    const auto object = DecodeLogObject(body, {name->shard, name->epoch, name->number});
    ASSERT_TRUE(object.ok()) << object.status();
    for (const std::string& record : std::get<Segment>(*object).records) {
      const std::string sealed = SealedKey(1, 1);
      EXPECT_FALSE(absl::StrContains(record, sealed.substr(0, 5)));
    }
  }
  EXPECT_GE(segments, 1);
}

}  // namespace
}  // namespace tacho::storage

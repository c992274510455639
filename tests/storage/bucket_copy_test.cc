// What a bucket has of a store, as an ordinary directory and as a report: nothing is lost, changed
// or claimed, and each kind of damage is named.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "rocksdb/env.h"
#include "storage/db/directory_check.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/segment.h"
#include "storage/shipping/bucket_check.h"
#include "storage/shipping/bucket_restore.h"
#include "tests/storage/shared_store_fixture.h"

namespace tacho::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class BucketCopyTest : public SharedStoreFixture {
 protected:
  ~BucketCopyTest() override { store_.reset(); }  // It may be on `copy_`.

  // A day that is only in the bucket, late rows of it on the disk, a day on the disk, and a log of
  // two owners that goes on behind the last commit.
  void MakeShard() {
    options_.history.local_retention = absl::Hours(24);
    Open();
    SendAll(1, 9);
    ASSERT_TRUE(store_->Seal().ok());
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
    SendAll(16, 18);
    all_ = Everything();
  }
  // Another owner takes over from the bucket alone, and goes on.
  void TakeOver() {
    Die();
    TakeNewDisk();
    Open();
    SendAll(19, 22);
    all_ = Everything();
  }

  absl::StatusOr<BucketRestored> Restore(BucketRestoreOptions options = {}) {
    copy_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    return RestoreInto(copy_.get(), std::move(options));
  }
  absl::StatusOr<BucketRestored> RestoreInto(rocksdb::Env* env, BucketRestoreOptions options = {}) {
    options.path = "/copy";
    options.env = env;
    options.bucket = &bucket_;
    options.before_retry = [](int) { return absl::UnavailableError("no answer"); };
    return RestoreFromBucket(options);
  }
  // Opens the restored directory as a collector without a bucket does.
  absl::Status OpenCopy() {
    store_.reset();
    options_.history = {};
    options_.shared = {};
    options_.env = copy_.get();
    options_.path = "/copy";
    return TryOpen();
  }
  BucketChecked Check(bool deep = false) {
    const auto checked =
        CheckBucket({.bucket = &bucket_,
                     .before_retry = [](int) { return absl::UnavailableError("no answer"); },
                     .deep = deep});
    EXPECT_TRUE(checked.ok()) << checked.status();
    return checked.ok() ? *checked : BucketChecked();
  }
  static std::vector<std::string> Faults(const BucketChecked& checked) {
    std::vector<std::string> faults;
    for (const FoundFault& fault : checked.faults) faults.push_back(fault.what);
    return faults;
  }
  std::vector<std::string> KeysOf(ObjectKind kind) {
    std::vector<std::string> keys;
    for (const auto& [key, body] : bucket_.Objects()) {
      const auto name = ParseObjectKey(key);
      if (name.has_value() && name->kind == kind) keys.push_back(key);
    }
    return keys;
  }
  // Segments of the log that are replayed.
  std::vector<std::string> Segments(uint64_t epoch) {
    std::vector<std::string> keys;
    uint64_t first = 0;
    for (const LogStart& log : InBucket().logs) {
      if (log.epoch == epoch) first = log.first;
    }
    for (const std::string& key : KeysOf(ObjectKind::kSegment)) {
      const auto name = ParseObjectKey(key);
      if (name->epoch == epoch && name->number >= first) keys.push_back(key);
    }
    return keys;
  }
  void Flip(const std::string& key) {
    std::string body = bucket_.Objects()[key];
    body[body.size() / 2] = static_cast<char>(body[body.size() / 2] ^ 1);
    bucket_.Change(key, body);
  }

  std::string all_;
  std::unique_ptr<rocksdb::Env> copy_;
};

TEST_F(BucketCopyTest, RestoredDirectoryIsAnOrdinaryStoreWithEverything) {
  MakeShard();
  TakeOver();
  const std::map<std::string, std::string> before = bucket_.Objects();
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(bucket_.Objects(), before) << "nothing is claimed or sealed";
  EXPECT_EQ(restored->epoch, 2u);
  EXPECT_EQ(restored->owner, "test");
  EXPECT_EQ(restored->days, 1u);
  EXPECT_GT(restored->blocks, 0u);
  EXPECT_GT(restored->segments, 0u);
  EXPECT_THAT(restored->left_out, IsEmpty());
  const absl::Status opened = OpenCopy();
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(Everything(), all_);
  EXPECT_EQ(Samples(), 22u * 20);
  EXPECT_EQ(Acknowledged(), 22u);
  // It goes on as any store does, and keeps that.
  ASSERT_TRUE(Send(22).ok());
  EXPECT_EQ(Samples(), 22u * 20);
  SendAll(23, 25);
  ASSERT_TRUE(store_->Seal().ok());
  Reopen();
  EXPECT_EQ(Samples(), 25u * 20);
}

TEST_F(BucketCopyTest, OwnerGoesOnWhileItsBucketIsRestored) {
  MakeShard();
  // Between requests of the restore the owner writes, seals and commits.
  uint64_t sequence = 18;
  bool busy = false;
  int gets = 0;
  bucket_.SetBefore([&](absl::string_view call, absl::string_view) {
    // The owner's other threads do not get anything.
    if (call != "get" || busy || ++gets % 3 != 0 || sequence > 40) return absl::OkStatus();
    busy = true;
    SendAll(sequence + 1, sequence + 2);
    sequence += 2;
    EXPECT_TRUE(store_->Seal().ok());
    EXPECT_TRUE(store_->CommitShared().ok());
    busy = false;
    return absl::OkStatus();
  });
  copy_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  const auto restored = RestoreInto(copy_.get());
  bucket_.SetBefore(nullptr);
  ASSERT_TRUE(restored.ok()) << restored.status();
  ASSERT_GT(sequence, 18u);
  const std::string all = Everything();
  const absl::Status opened = OpenCopy();
  ASSERT_TRUE(opened.ok()) << opened;
  const uint64_t watermark = Acknowledged();
  EXPECT_GE(watermark, 18u);
  EXPECT_EQ(Samples(), watermark * 20) << "each message is there whole and once, or not at all";
  SendAll(watermark + 1, sequence);
  EXPECT_EQ(Everything(), all);
}

TEST_F(BucketCopyTest, OldDaysCanBeLeftOut) {
  MakeShard();
  ASSERT_EQ(InBucket().closed_days.size(), 1u);
  const int64_t day = InBucket().closed_days.begin()->first;
  const auto restored = Restore({.closed_days_from = day + 1});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT(restored->left_out, ElementsAre(day));
  EXPECT_EQ(restored->blocks, 0u);
  ASSERT_TRUE(OpenCopy().ok());
  EXPECT_EQ(Samples(), (22u - 4 - 9) * 20) << "late rows of that day are in the state";
}

// It is no copy that the bucket's owner may throw away.
TEST_F(BucketCopyTest, RestoredStoreIsOneOfItsOwn) {
  MakeShard();
  ASSERT_TRUE(Restore().ok());
  Die();
  options_.env = copy_.get();
  options_.path = "/copy";
  const uint64_t epoch = InBucket().epoch;
  const absl::Status refused = TryOpen();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(InBucket().epoch, epoch);
}

// An owner keeps what it replaces for an hour; a restore may take longer.
TEST_F(BucketCopyTest, WhatIsReplacedMeanwhileIsNoDamage) {
  MakeShard();
  const std::string block = KeysOf(ObjectKind::kBlock).front();
  const std::map<std::string, std::string> before = bucket_.Objects();
  const Manifest manifest = InBucket();
  const int64_t day = manifest.closed_days.begin()->first;
  Manifest next;
  bucket_.SetBefore([&](absl::string_view call, absl::string_view key) {
    if (call != "get" || key != block) return absl::OkStatus();
    bucket_.Change(ManifestKey(0), EncodeManifest(next));
    return bucket_.Delete(block);
  });
  // Retention has removed the day.
  next = manifest;
  next.closed_days.clear();
  next.kept_from_day = day + 1;
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT(restored->left_out, ElementsAre(day));
  // Late rows came, and the day was written anew.
  bucket_.Change(block, before.at(block));
  bucket_.Change(ManifestKey(0), before.at(ManifestKey(0)));
  next = manifest;
  next.closed_days[day].key = BlockListKey(0, day, 1, 999);
  const absl::Status replaced = Restore().status();
  EXPECT_TRUE(absl::IsAborted(replaced)) << replaced;
  EXPECT_THAT(std::string(replaced.message()), HasSubstr("begin again"));
  // The same manifest is there still.
  bucket_.Change(block, before.at(block));
  bucket_.Change(ManifestKey(0), before.at(ManifestKey(0)));
  next = manifest;
  EXPECT_TRUE(absl::IsDataLoss(Restore().status()));
  bucket_.SetBefore(nullptr);
  EXPECT_THAT(Faults(Check()), ElementsAre(HasSubstr(block)));
}

TEST_F(BucketCopyTest, HalfMadeDirectoryIsRefused) {
  MakeShard();
  const std::string block = KeysOf(ObjectKind::kBlock).front();
  bucket_.SetBefore([&](absl::string_view, absl::string_view key) -> absl::Status {
    return key == block ? absl::PermissionDeniedError("the user has lost patience")
                        : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsPermissionDenied(Restore().status()));
  EXPECT_TRUE(IsHalfRestored(copy_.get(), "/copy"));
  const absl::Status again = RestoreInto(copy_.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  EXPECT_THAT(std::string(again.message()), HasSubstr("delete the directory"));
  const absl::Status opened = OpenCopy();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()),
              AllOf(HasSubstr("did not end"), HasSubstr("delete the directory")));
}

TEST_F(BucketCopyTest, DirectoryWithSomethingInItIsLeftAlone) {
  MakeShard();
  copy_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  ASSERT_TRUE(copy_->CreateDir("/copy").ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(copy_.get(), "mine", "/copy/notes").ok());
  const absl::Status refused = RestoreInto(copy_.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_FALSE(IsHalfRestored(copy_.get(), "/copy"));
}

TEST_F(BucketCopyTest, BucketWithoutACopyOfAStoreIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(Restore().status()));
  options_.shared.on = false;
  Open();
  SendAll(1, 9);
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Hours(48);
  ASSERT_TRUE(Send(10).ok());
  ASSERT_TRUE(store_->MoveHistory().ok());
  const absl::Status refused = Restore().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("only old days"));
  const BucketChecked checked = Check();
  EXPECT_FALSE(checked.has_copy);
  EXPECT_EQ(checked.days, 1u);
  EXPECT_THAT(Faults(checked), IsEmpty());
}

TEST_F(BucketCopyTest, WholeBucketHasNoFaults) {
  MakeShard();
  TakeOver();
  const auto before = bucket_.Objects();
  for (const bool deep : {false, true}) {
    const BucketChecked checked = Check(deep);
    EXPECT_THAT(Faults(checked), IsEmpty());
    EXPECT_TRUE(checked.has_copy);
    EXPECT_EQ(checked.epoch, 2u);
    EXPECT_GT(checked.segments, 0u);
    EXPECT_GT(checked.state_files, 0u);
    EXPECT_EQ(checked.blocks, KeysOf(ObjectKind::kBlock).size());
  }
  EXPECT_EQ(bucket_.Objects(), before);
}

TEST_F(BucketCopyTest, EachMissingFileIsNamed) {
  MakeShard();
  for (const ObjectKind kind :
       {ObjectKind::kStateFile, ObjectKind::kBlockList, ObjectKind::kBlock}) {
    for (const std::string& key : KeysOf(kind)) {
      const std::string body = bucket_.Objects()[key];
      ASSERT_TRUE(bucket_.Delete(key).ok());
      const std::vector<std::string> faults = Faults(Check());
      const absl::Status restored = Restore().status();
      bucket_.Change(key, body);
      if (faults.empty()) {
        // A commit has made it superfluous, and it is not deleted yet.
        EXPECT_TRUE(restored.ok()) << key << ": " << restored;
        continue;
      }
      EXPECT_THAT(faults, ElementsAre(HasSubstr(key)));
      EXPECT_TRUE(absl::IsDataLoss(restored)) << restored;
      EXPECT_THAT(std::string(restored.message()), HasSubstr(key));
    }
  }
}

TEST_F(BucketCopyTest, EachFlippedByteIsNamed) {
  MakeShard();
  int found = 0;
  for (const ObjectKind kind :
       {ObjectKind::kStateFile, ObjectKind::kBlockList, ObjectKind::kBlock, ObjectKind::kSegment}) {
    int found_of_kind = 0;
    for (const std::string& key : KeysOf(kind)) {
      const std::string body = bucket_.Objects()[key];
      Flip(key);
      const std::vector<std::string> faults = Faults(Check(true));
      const absl::Status restored = Restore().status();
      bucket_.Change(key, body);
      EXPECT_EQ(faults.empty(), restored.ok()) << key << ": " << restored;
      if (faults.empty()) continue;
      ++found_of_kind;
      EXPECT_THAT(faults, ElementsAre(HasSubstr(key)));
      EXPECT_TRUE(absl::IsDataLoss(restored)) << restored;
      EXPECT_THAT(std::string(restored.message()), HasSubstr(key));
    }
    EXPECT_GT(found_of_kind, 0) << "of kind " << static_cast<int>(kind);
    found += found_of_kind;
  }
  EXPECT_GT(found, 6);
}

TEST_F(BucketCopyTest, BlocksOfAnotherSizeAreFoundWithoutReadingThem) {
  MakeShard();
  const std::string key = KeysOf(ObjectKind::kBlock).front();
  const std::string body = bucket_.Objects()[key];
  for (const std::string& other : {body.substr(0, body.size() - 1), body + "x", std::string()}) {
    bucket_.Change(key, other);
    const uint64_t got = bucket_.bytes_got();
    EXPECT_THAT(Faults(Check()), ElementsAre(AllOf(HasSubstr(key), HasSubstr("bytes"))));
    EXPECT_GT(got + 10'000'000, bucket_.bytes_got());
  }
}

TEST_F(BucketCopyTest, HolesInTheLogAreNamed) {
  Open();
  SendAll(1, 30);
  const std::vector<std::string> segments = Segments(1);
  ASSERT_GE(segments.size(), 8u);
  const std::string key = segments[2];
  ASSERT_TRUE(bucket_.Delete(key).ok());
  const auto is_named = AllOf(HasSubstr(key), HasSubstr("lifecycle rule"));
  const BucketChecked checked = Check();
  EXPECT_THAT(Faults(checked), ElementsAre(is_named));
  EXPECT_EQ(checked.segments, segments.size() - 1) << "what is behind the hole is looked at, too";
  const absl::Status restored = Restore().status();
  EXPECT_TRUE(absl::IsDataLoss(restored)) << restored;
  EXPECT_THAT(std::string(restored.message()), is_named);
}

// As an owner leaves it that is killed with several segments on their way: those behind the first
// that is missing were not acknowledged.
TEST_F(BucketCopyTest, SegmentsBehindOneThatIsOnItsWayDoNotCount) {
  Open();
  SendAll(1, 30);
  const std::vector<std::string> segments = Segments(1);
  ASSERT_GE(segments.size(), 8u);
  ASSERT_TRUE(bucket_.Delete(segments[segments.size() - 3]).ok());
  const BucketChecked checked = Check();
  EXPECT_THAT(Faults(checked), IsEmpty());
  ASSERT_THAT(checked.logs, SizeIs(1));
  EXPECT_EQ(checked.logs[0].behind, 2u);
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->segments, segments.size() - 3);
  EXPECT_EQ(restored->logs[0].behind, 2u);
}

TEST_F(BucketCopyTest, MissingSealIsNamed) {
  Open();
  SendAll(1, 5);
  Die();
  Open();
  SendAll(6, 8);
  std::string seal;
  for (const auto& [key, body] : bucket_.Objects()) {
    if (absl::StartsWith(body, "tachosel")) seal = key;
  }
  // The first commit of an owner begins behind older logs: an owner that has not made one yet.
  Manifest manifest = InBucket();
  ASSERT_FALSE(seal.empty());
  if (manifest.logs.size() == 1) {
    manifest.logs.insert(manifest.logs.begin(), {.epoch = 1, .first = 1});
    bucket_.Change(ManifestKey(0), EncodeManifest(manifest));
  }
  EXPECT_THAT(Faults(Check()), IsEmpty());
  ASSERT_TRUE(bucket_.Delete(seal).ok());
  EXPECT_THAT(Faults(Check()), ElementsAre(HasSubstr(seal)));
  EXPECT_TRUE(absl::IsDataLoss(Restore().status()));
}

// An owner that has claimed the shard and not sealed the older log yet has served nothing.
TEST_F(BucketCopyTest, TakeoverUnderWayEndsTheRestoreAtTheOlderLog) {
  Open();
  SendAll(1, 8);
  all_ = Everything();
  Manifest manifest = InBucket();
  manifest.logs.push_back({.epoch = 2, .first = 1});
  manifest.epoch = 2;
  ++manifest.version;
  bucket_.Change(ManifestKey(0), EncodeManifest(manifest));
  EXPECT_THAT(Faults(Check()), IsEmpty());
  const auto restored = Restore();
  ASSERT_TRUE(restored.ok()) << restored.status();
  ASSERT_THAT(restored->logs, SizeIs(1));
  EXPECT_FALSE(restored->logs[0].sealed);
  Die();
  ASSERT_TRUE(OpenCopy().ok());
  EXPECT_EQ(Everything(), all_);
}

TEST_F(BucketCopyTest, DamagedManifestIsNamed) {
  MakeShard();
  bucket_.Change(ManifestKey(0), "{}");
  EXPECT_TRUE(absl::IsDataLoss(Restore().status()));
  const auto checked = CheckBucket(
      {.bucket = &bucket_, .before_retry = [](int) { return absl::UnavailableError("no"); }});
  EXPECT_TRUE(absl::IsDataLoss(checked.status()));
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("manifest"));
}

TEST_F(BucketCopyTest, BucketThatDoesNotAnswerIsNoFault) {
  MakeShard();
  bucket_.SetBefore([](absl::string_view, absl::string_view key) -> absl::Status {
    return absl::EndsWith(key, ".list") ? absl::UnavailableError("away") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(Restore().status()));
  const auto checked = CheckBucket(
      {.bucket = &bucket_, .before_retry = [](int) { return absl::UnavailableError("no"); }});
  EXPECT_TRUE(absl::IsUnavailable(checked.status()));
}

}  // namespace
}  // namespace tacho::storage

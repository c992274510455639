// What the ballast is good for: rows are refused before the disk is full, and work that makes room
// goes on meanwhile.
#include "storage/db/ballast.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/db/full_disk_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

TEST(BallastFileTest, IsOfRealBytesAndTakenOverByTheNextProcess) {
  const std::string path = testing::TempDir() + "/ballast-test";
  rocksdb::Env* const env = rocksdb::Env::Default();
  ASSERT_TRUE(env->CreateDirIfMissing(path).ok());
  const Ballast::Options options{.path = path, .env = env, .bytes = 3 * kMiB};
  {
    Ballast ballast(options);
    ASSERT_TRUE(ballast.Make());
    EXPECT_EQ(ballast.held(), 3 * kMiB);
    struct stat file = {};
    ASSERT_EQ(::stat((path + "/ballast").c_str(), &file), 0);
    EXPECT_EQ(static_cast<uint64_t>(file.st_size), 3 * kMiB);
    EXPECT_GE(static_cast<uint64_t>(file.st_blocks) * 512, 3 * kMiB) << "a hole holds nothing back";
  }
  Ballast next(options);
  EXPECT_EQ(next.held(), 3 * kMiB);
  next.GiveUp();
  EXPECT_EQ(next.held(), 0u);
  EXPECT_TRUE(env->FileExists(path + "/ballast").IsNotFound());
}

TEST(BallastFileTest, TakesASixteenthOfASmallDiskAndNothingWhereFreeSpaceIsUnknown) {
  CapacityEnv disk(48 * kMiB);
  ASSERT_TRUE(disk.CreateDirIfMissing("/store").ok());
  Ballast small({.path = "/store", .env = &disk, .bytes = 64 * kMiB});
  EXPECT_TRUE(small.Make());
  EXPECT_EQ(small.held(), 2 * kMiB) << "a power of two";
  EXPECT_EQ(disk.used(), 2 * kMiB);
  small.GiveUp();
  disk.HideFreeSpace(true);
  Ballast none({.path = "/store", .env = &disk, .bytes = 64 * kMiB});
  EXPECT_TRUE(none.Make());
  EXPECT_EQ(none.held(), 0u);
  EXPECT_FALSE(none.IsRoomLow(kMiB));
}

TEST(BallastFileTest, IsMadeOnlyWhenSomeRoomIsLeftBesides) {
  CapacityEnv disk(64 * kMiB);
  ASSERT_TRUE(disk.CreateDirIfMissing("/store").ok());
  Ballast ballast({.path = "/store", .env = &disk, .bytes = 4 * kMiB});
  ASSERT_TRUE(ballast.Make());
  ballast.GiveUp();
  disk.SetCapacity(disk.used() + 9 * kMiB - 1);
  EXPECT_FALSE(ballast.Make()) << "4 MiB, a quarter more, and twice 2 MiB";
  disk.SetCapacity(disk.used() + 9 * kMiB);
  EXPECT_TRUE(ballast.Make());
  EXPECT_FALSE(ballast.IsRoomLow(3 * kMiB));
  EXPECT_TRUE(ballast.IsRoomLow(3 * kMiB + 1));
}

// Else rows would be taken and refused in turns, as long as what comes at once is too large.
TEST(BallastFileTest, IsNotMadeAgainWhileWhatDidNotFitWouldNotFit) {
  CapacityEnv disk(64 * kMiB);
  ASSERT_TRUE(disk.CreateDirIfMissing("/store").ok());
  Ballast ballast({.path = "/store", .env = &disk, .bytes = 4 * kMiB});
  ASSERT_TRUE(ballast.Make());
  disk.SetCapacity(disk.used() + 9 * kMiB);
  EXPECT_TRUE(ballast.IsRoomLow(8 * kMiB));
  ballast.GiveUp();
  EXPECT_FALSE(ballast.Make()) << "13 MiB are free";
  disk.SetCapacity(disk.used() + 17 * kMiB);
  EXPECT_TRUE(ballast.Make());
}

TEST(BallastFileTest, GrowsWhenRoomIsMadeBeforeItIsThere) {
  CapacityEnv disk(kMiB);
  ASSERT_TRUE(disk.CreateDirIfMissing("/store").ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(&disk, std::string(kMiB, 'd'), "/store/data").ok());
  Ballast ballast({.path = "/store", .env = &disk, .bytes = 4 * kMiB});
  EXPECT_FALSE(ballast.Make());
  disk.SetCapacity(256 * kMiB);
  EXPECT_TRUE(ballast.Make());
  EXPECT_EQ(ballast.held(), 4 * kMiB);
}

class BallastTest : public FullDiskFixture {
 protected:
  BallastTest() {
    options_.ballast_bytes = 8 * kMiB;
    UseDisk(std::make_unique<CapacityEnv>(256 * kMiB));
  }
};

TEST_F(BallastTest, RowsAreRefusedBeforeTheDiskIsFullAndUpkeepGoesOn) {
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_EQ(store_->Stats().ballast_bytes, 8 * kMiB);
  Fill();
  EXPECT_EQ(AppendOne(2).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->Stats().ballast_bytes, 0u);
  EXPECT_EQ(disk_->refusals(), 0) << "nothing was written that did not fit";
  EXPECT_THAT(Stored(), ElementsAre(1));
  EXPECT_TRUE(store_->Seal().ok());
  EXPECT_EQ(store_->Stats().journal_entries, 0u);
  EXPECT_FALSE(AppendOne(2).ok());
  disk_->SetCapacity(256 * kMiB);
  ASSERT_TRUE(AppendPatiently(2).ok());
  EXPECT_EQ(store_->Stats().ballast_bytes, 8 * kMiB);
  EXPECT_THAT(States(), ElementsAre(DiskState::kRefusing, DiskState::kWritable));
  Reopen();
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
}

TEST_F(BallastTest, OneThatSomebodyDeletedIsGivenUpLikeAnyOther) {
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_TRUE(disk_->DeleteFile("/store/ballast").ok());
  Fill();
  EXPECT_FALSE(AppendOne(2).ok());
  EXPECT_EQ(store_->Stats().ballast_bytes, 0u);
  EXPECT_FALSE(AppendOne(2).ok());
  EXPECT_THAT(States(), ElementsAre(DiskState::kRefusing));
}

TEST_F(BallastTest, DaysAreDroppedWhileRowsAreRefused) {
  options_.retention = absl::Hours(48);
  Reopen();
  ASSERT_TRUE(AppendOne(1).ok());
  ASSERT_TRUE(store_->Seal().ok());
  Reopen();  // So that the day is in a table.
  layout_ = nullptr;
  Fill();
  EXPECT_FALSE(AppendOne(2, absl::ToUnixNanos(now_) / kDay).ok());
  EXPECT_TRUE(store_->EnforceRetention().ok());
  EXPECT_EQ(store_->Stats().partitions, 0u);
  EXPECT_EQ(disk_->refusals(), 0);
}

// Another program has taken the room between the look at it and the write.
TEST_F(BallastTest, AfterAWriteThatFoundNoRoomTheBallastIsEnoughToGoOnWithUpkeep) {
  ASSERT_TRUE(AppendOne(1).ok());
  disk_->OnChange([this](const std::string& what, const std::string& name) {
    if (what == "append" && absl::EndsWith(name, ".log")) Fill();
  });
  EXPECT_FALSE(AppendOne(2).ok());
  EXPECT_GT(disk_->refusals(), 0);
  EXPECT_TRUE(Await([&] { return store_->Stats().ballast_bytes == 0; }));
  disk_->OnChange(nullptr);
  disk_->SetCapacity(disk_->used() + 8 * kMiB);  // What the ballast took.
  EXPECT_TRUE(Await([&] { return store_->Seal().ok(); })) << "nobody has made room";
  EXPECT_FALSE(AppendOne(2).ok());
  disk_->SetCapacity(256 * kMiB);
  ASSERT_TRUE(AppendPatiently(2).ok());
  EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
  UseDisk(disk_->Copy("/store"));
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
}

TEST_F(BallastTest, AStartWithoutRoomForItWaitsForRoom) {
  ASSERT_TRUE(AppendOne(1).ok());
  auto crashed = disk_->Copy("/store");
  ASSERT_TRUE(crashed->DeleteFile("/store/ballast").ok());
  const std::string data(40 * kMiB, 'd');
  ASSERT_TRUE(rocksdb::WriteStringToFile(crashed.get(), data, "/store/data").ok());
  crashed->SetCapacity(crashed->used() + 3 * kMiB);
  options_.ballast_bytes = 2 * kMiB;
  UseDisk(std::move(crashed));
  EXPECT_TRUE(Await([&] { return State() == DiskState::kRefusing; }));
  EXPECT_THAT(Stored(), ElementsAre(1));
  EXPECT_TRUE(store_->Seal().ok());
  disk_->SetCapacity(256 * kMiB);
  EXPECT_TRUE(AppendPatiently(2).ok());
}

}  // namespace
}  // namespace tacho::storage

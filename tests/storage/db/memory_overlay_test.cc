// A start on a full disk: everything stored can be read, nothing is written, and storing begins
// when there is room, without a restart.
#include "storage/db/memory_overlay.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/db/full_disk_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::Not;

class MemoryOverlayTest : public FullDiskFixture {
 protected:
  // A store that was killed with rows in columns, in tables and in the log; nothing fits onto its
  // disk.
  std::unique_ptr<CapacityEnv> Killed(bool with_ballast = false) {
    options_.ballast_bytes = with_ballast ? 4 << 20 : 0;
    UseDisk(std::make_unique<CapacityEnv>(uint64_t{256} << 20));
    for (uint64_t message = 1; message <= 20; ++message) {
      EXPECT_TRUE(AppendOne(message, static_cast<int64_t>(message / 8)).ok());
      if (message == 7) {
        EXPECT_TRUE(store_->Seal().ok());
      }
      if (message == 12) {
        Reopen();
        layout_ = nullptr;
      }
    }
    auto killed = disk_->Copy("/store");
    if (with_ballast) {  // So that the disk is large enough for it.
      const std::string data(64 << 20, 'd');
      EXPECT_TRUE(rocksdb::WriteStringToFile(killed.get(), data, "/store/data").ok());
    }
    killed->SetCapacity(killed->used());
    return killed;
  }
  static std::map<std::string, std::string> Contents(CapacityEnv* disk) {
    std::map<std::string, std::string> all;
    std::vector<std::string> names;
    EXPECT_TRUE(disk->GetChildren("/store", &names).ok());
    for (const std::string& name : names) {
      if (name == "LOCK") continue;
      rocksdb::ReadFileToString(disk, "/store/" + name, &all[name]).PermitUncheckedError();
    }
    return all;
  }
};

TEST_F(MemoryOverlayTest, AStartOnAFullDiskShowsEverythingAndTakesRowsWhenThereIsRoom) {
  auto killed = Killed();
  const auto before = Contents(killed.get());
  UseDisk(std::move(killed));
  EXPECT_TRUE(store_->Stats().read_only);
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(20)));
  EXPECT_EQ(AppendOne(21).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store_->Seal().ok());
  EXPECT_FALSE(store_->Checkpoint("/copy").ok());
  EXPECT_TRUE(Await([&] { return State() == DiskState::kRefusing; }));
  EXPECT_EQ(Contents(disk_.get()), before) << "the disk is as it was";
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(20)));
  disk_->SetCapacity(kRoomy);
  ASSERT_TRUE(AppendPatiently(21, 3).ok());
  EXPECT_FALSE(store_->Stats().read_only);
  EXPECT_EQ(State(), DiskState::kWritable);
  EXPECT_TRUE(store_->Seal().ok());
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(21)));
  auto again = disk_->Copy("/store");
  Reopen();
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(21)));
  UseDisk(std::move(again));
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(21))) << "after a crash";
}

// Rows that recovery leaves for later come in with a write, which there is no room for.
TEST_F(MemoryOverlayTest, JobsThatAreTooLargeForTheOpeningAreShownToo) {
  options_.series_at_open = 0;
  UseDisk(Killed());
  ASSERT_TRUE(store_->Stats().read_only);
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(20)));
}

TEST_F(MemoryOverlayTest, ACrashAtAnyMomentOfLandingLosesNothing) {
  UseDisk(Killed());
  ASSERT_TRUE(store_->Stats().read_only);
  ASSERT_TRUE(Await([&] { return State() == DiskState::kRefusing; }));
  std::vector<std::unique_ptr<CapacityEnv>> crashes;
  disk_->OnChange([&](const std::string&, const std::string& name) {
    if (absl::StrContains(name, "room.probe") || crashes.size() > 60) return;
    crashes.push_back(disk_->Copy("/store"));
  });
  disk_->SetCapacity(kRoomy);
  ASSERT_TRUE(Await([&] { return State() == DiskState::kWritable; }));
  disk_->OnChange(nullptr);
  EXPECT_GT(crashes.size(), 10u);
  for (auto& crash : crashes) {
    UseDisk(std::move(crash));
    ASSERT_THAT(Stored(), ElementsAreArray(UpTo(20)));
    ASSERT_TRUE(AppendOne(21).ok());
  }
}

TEST_F(MemoryOverlayTest, LandingThatFindsNoRoomLeavesTheDiskAsItWas) {
  auto disk = std::make_unique<CapacityEnv>(1000);
  ASSERT_TRUE(disk->CreateDirIfMissing("/store").ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(disk.get(), "old", "/store/CURRENT").ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(disk.get(), "gone", "/store/1.log").ok());
  const auto before = Contents(disk.get());
  MemoryOverlay overlay(disk.get());
  std::unique_ptr<rocksdb::WritableFile> log;
  ASSERT_TRUE(overlay.NewWritableFile("/store/2.log", &log, {}).ok());
  ASSERT_TRUE(log->Append(std::string(500, 'a')).ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(&overlay, std::string(400, 'b'), "/store/3.sst").ok());
  ASSERT_TRUE(rocksdb::WriteStringToFile(&overlay, "new", "/store/4.dbtmp").ok());
  ASSERT_TRUE(overlay.RenameFile("/store/4.dbtmp", "/store/CURRENT").ok());
  ASSERT_TRUE(overlay.DeleteFile("/store/1.log").ok());
  EXPECT_TRUE(overlay.FileExists("/store/1.log").IsNotFound());
  std::unique_ptr<rocksdb::RandomAccessFile> table;
  ASSERT_TRUE(overlay.NewRandomAccessFile("/store/3.sst", &table, {}).ok());
  EXPECT_EQ(overlay.bytes(), 903u);
  for (uint64_t room = 0; room < 903; room += 43) {
    disk->SetCapacity(disk->used() + room);
    EXPECT_FALSE(overlay.Land().ok()) << room;
    EXPECT_EQ(Contents(disk.get()), before) << room;
  }
  disk->SetCapacity(kRoomy);
  ASSERT_TRUE(overlay.Land().ok());
  ASSERT_TRUE(log->Append("later").ok());
  ASSERT_TRUE(log->Close().ok());
  const std::map<std::string, std::string> expected = {{"2.log", std::string(500, 'a') + "later"},
                                                       {"3.sst", std::string(400, 'b')},
                                                       {"CURRENT", "new"}};
  EXPECT_EQ(Contents(disk.get()), expected);
  EXPECT_EQ(overlay.bytes(), 0u);
  rocksdb::Slice read;
  char scratch[8];
  ASSERT_TRUE(table->Read(396, 8, &read, scratch).ok());
  EXPECT_EQ(read.ToString(), "bbbb");
}

TEST_F(MemoryOverlayTest, TheBallastIsGivenUpBeforeThatIsNeeded) {
  UseDisk(Killed(/*with_ballast=*/true));
  EXPECT_FALSE(store_->Stats().read_only);
  EXPECT_EQ(store_->Stats().ballast_bytes, 0u);
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(20)));
  EXPECT_EQ(AppendOne(21).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(store_->Seal().ok()) << "it makes room";
  EXPECT_THAT(States(), Not(Contains(DiskState::kFailed)));
  disk_->SetCapacity(kRoomy);
  EXPECT_TRUE(AppendPatiently(21).ok());
}

// The file system may not say how much is free, or it may be wrong.
TEST_F(MemoryOverlayTest, ADiskThatTurnsOutToBeFullWhileTheDatabaseOpensIsNoReasonNotToStart) {
  auto killed = Killed();
  killed->HideFreeSpace(true);
  UseDisk(std::move(killed));
  EXPECT_TRUE(store_->Stats().read_only);
  EXPECT_THAT(Stored(), ElementsAreArray(UpTo(20)));
  disk_->SetCapacity(kRoomy);
  EXPECT_TRUE(AppendPatiently(21).ok());
}

TEST_F(MemoryOverlayTest, ANewStoreNeedsRoom) {
  CapacityEnv disk(1 << 20);
  StoreOptions options = options_;
  options.env = &disk;
  const auto store = Store::Open(options);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kUnavailable) << store.status();
}

}  // namespace
}  // namespace tacho::storage

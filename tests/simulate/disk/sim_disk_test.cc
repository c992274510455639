// What the disk of a simulated machine does to every way of writing.
#include "tests/simulate/disk/sim_disk.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "rocksdb/env.h"
#include "tests/simulate/schedule/schedule.h"

namespace tacho::simulate {
namespace {

constexpr char kFile[] = "/disk/file";

class SimDiskTest : public ::testing::Test {
 protected:
  SimDiskTest() {
    EXPECT_TRUE(rocksdb::WriteStringToFile(&disk_, "aaaa", kFile, true).ok());
    EXPECT_TRUE(disk_.NewRandomRWFile(kFile, &file_, rocksdb::EnvOptions()).ok());
    EXPECT_TRUE(disk_.NewDirectory("/disk", &directory_).ok());
  }

  SimDisk disk_{1};
  std::unique_ptr<rocksdb::RandomRWFile> file_;
  std::unique_ptr<rocksdb::Directory> directory_;
};

TEST_F(SimDiskTest, AWriteInPlaceFailsHalfWritten) {
  disk_.Set({.failing_appends = 1});
  EXPECT_TRUE(file_->Write(0, "bbbb").IsIOError());
  EXPECT_EQ(disk_.power()->files()[kFile], "bbaa");
  EXPECT_EQ(disk_.errors(), 1u);
  EXPECT_TRUE(file_->Write(0, "cccc").ok());
}

TEST_F(SimDiskTest, AWriteInPlaceFailsLate) {
  disk_.Set({.failing_appends = 1, .late = true});
  EXPECT_TRUE(file_->Write(0, "bbbb").IsIOError());
  EXPECT_EQ(disk_.power()->files()[kFile], "bbbb");
}

TEST_F(SimDiskTest, AnAppendWithoutRoomIsHalfWrittenAndNoError) {
  std::unique_ptr<rocksdb::WritableFile> log;
  ASSERT_TRUE(disk_.NewWritableFile("/disk/log", &log, rocksdb::EnvOptions()).ok());
  disk_.Set({.full_append = 2});
  EXPECT_TRUE(log->Append("aaaa").ok());
  EXPECT_TRUE(log->Append("bbbb").IsNoSpace());
  EXPECT_EQ(disk_.power()->files()["/disk/log"], "aaaabb");
  EXPECT_EQ(disk_.errors(), 0u);
  EXPECT_TRUE(log->Append("cccc").ok());
}

TEST_F(SimDiskTest, AProcessIsKilledSoonAfterALargeAppendIsRefused) {
  std::unique_ptr<rocksdb::WritableFile> log;
  ASSERT_TRUE(disk_.NewWritableFile("/disk/log", &log, rocksdb::EnvOptions()).ok());
  disk_.Set({.full_size = 4, .kill_after = 2});
  EXPECT_TRUE(log->Append("aaaa").IsNoSpace());
  EXPECT_TRUE(log->Append("b").ok());
  EXPECT_FALSE(disk_.power()->dead());
  EXPECT_FALSE(log->Append("c").ok());
  EXPECT_TRUE(disk_.power()->dead());
}

TEST_F(SimDiskTest, RotChangesABitOfATableThatIsSynced) {
  std::unique_ptr<rocksdb::WritableFile> table;
  ASSERT_TRUE(disk_.NewWritableFile("/disk/1.sst", &table, rocksdb::EnvOptions()).ok());
  ASSERT_TRUE(table->Append("aaaa").ok());
  EXPECT_EQ(disk_.power()->Rot(), "") << "it is not synced";
  ASSERT_TRUE(table->Sync().ok());
  EXPECT_EQ(disk_.power()->Rot(), "/disk/1.sst");
  const auto files = disk_.power()->files();
  EXPECT_EQ(files.at(kFile), "aaaa") << "it is no table";
  int changed = 0;
  for (const char c : files.at("/disk/1.sst"))
    changed += std::popcount(static_cast<unsigned>(c ^ 'a') & 0xff);
  EXPECT_EQ(changed, 1);
}

TEST_F(SimDiskTest, TheFirstLargeAppendIsHalfWritten) {
  std::unique_ptr<rocksdb::WritableFile> log;
  ASSERT_TRUE(disk_.NewWritableFile("/disk/log", &log, rocksdb::EnvOptions()).ok());
  disk_.Set({.full_size = 4});
  EXPECT_TRUE(log->Append("aaa").ok());
  EXPECT_TRUE(log->Append("bbbb").IsNoSpace());
  EXPECT_TRUE(log->Append("cccc").ok());
  EXPECT_EQ(disk_.power()->files()["/disk/log"], "aaabbcccc");
}

TEST_F(SimDiskTest, SyncsInPlaceAndOfDirectoriesFail) {
  disk_.Set({.failing_syncs = 2});
  EXPECT_TRUE(file_->Sync().IsIOError());
  EXPECT_TRUE(directory_->Fsync().IsIOError());
  EXPECT_EQ(disk_.errors(), 2u);
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_TRUE(directory_->Fsync().ok());
}

TEST_F(SimDiskTest, SyncsInPlaceAndOfDirectoriesAreSlow) {
  constexpr int64_t kSecond = 1'000'000'000;
  disk_.Set({.sync_ns = kSecond});
  const int64_t begin = LaboratoryNs();
  EXPECT_TRUE(file_->Sync().ok());
  const int64_t between = LaboratoryNs();
  EXPECT_TRUE(directory_->Fsync().ok());
  EXPECT_GE(between - begin, kSecond);
  EXPECT_GE(LaboratoryNs() - between, kSecond);
}

// The store's ballast and its room to open follow from these sizes.
TEST_F(SimDiskTest, SizesOfFilesAreThoseOfThisDisk) {
  ASSERT_TRUE(rocksdb::WriteStringToFile(&disk_, "b", "/disk/below/other", true).ok());
  std::vector<rocksdb::Env::FileAttributes> files;
  ASSERT_TRUE(disk_.GetChildrenFileAttributes("/disk", &files).ok());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "file");
  EXPECT_EQ(files[0].size_bytes, 4u);
}

}  // namespace
}  // namespace tacho::simulate

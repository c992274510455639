// A disk that has room for what is written, but not for what a compaction writes beside it.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/statistics.h"
#include "storage/db/database.h"

namespace tacho::storage {
namespace {

// A file system in memory that refuses tables of compactions, as long as it is told to.
class NoRoomToCompactEnv : public rocksdb::EnvWrapper {
 public:
  NoRoomToCompactEnv()
      : EnvWrapper(rocksdb::NewMemEnv(rocksdb::Env::Default())), memory_(target()) {}
  const char* Name() const override { return "NoRoomToCompactEnv"; }

  void Refuse(bool refuse) { refuses_ = refuse; }
  int refusals() const { return refusals_; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    std::unique_ptr<rocksdb::WritableFile> real;
    rocksdb::Status status = target()->NewWritableFile(name, &real, options);
    if (!status.ok()) return status;
    if (absl::EndsWith(name, ".sst")) real = std::make_unique<File>(std::move(real), this);
    *file = std::move(real);
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> real, NoRoomToCompactEnv* env)
        : WritableFileWrapper(real.get()), real_(std::move(real)), env_(env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (!env_->refuses_ || !IsCompaction()) return real_->Append(data);
      ++env_->refusals_;
      return rocksdb::Status::NoSpace("injected");
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> real_;
    NoRoomToCompactEnv* const env_;
  };

  // RocksDB compacts on threads of this name, and writes memory out on others. The manifest is
  // written by either, for both.
  static bool IsCompaction() {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return absl::string_view(name) == "rocksdb:low";
  }

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<bool> refuses_{false};
  std::atomic<int> refusals_{0};
};

class CompactionRoomTest : public testing::Test {
 protected:
  CompactionRoomTest() {
    DatabaseOptions options;
    options.path = "/store";
    options.env = &env_;
    auto database = Database::Open(options);
    EXPECT_TRUE(database.ok()) << database.status();
    if (database.ok()) database_ = *std::move(database);
  }

  // A table more of the same key; after a few of them RocksDB compacts.
  rocksdb::Status WriteTable() {
    const rocksdb::Status put =
        database_->db->Put(rocksdb::WriteOptions(), database_->index, "key", "value");
    return put.ok() ? database_->Flush(rocksdb::FlushOptions()) : put;
  }
  void WriteTablesUntilCompactionIsRefused() {
    env_.Refuse(true);
    for (int tries = 0; tries < 1000 && database_->disk->trouble().ok(); ++tries) {
      ASSERT_TRUE(WriteTable().ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(database_->disk->trouble().ok());
  }

  NoRoomToCompactEnv env_;
  std::unique_ptr<Database> database_;
};

// RocksDB 7.8 fails an atomic flush that ends while it remembers the error of a compaction, and
// never takes up that memory again. So it must not remember.
TEST_F(CompactionRoomTest, MemoryIsWrittenOutWhileThereIsNoRoomToCompact) {
  WriteTablesUntilCompactionIsRefused();
  EXPECT_FALSE(database_->disk->blocks_writes());
  for (int tables = 0; tables < 8; ++tables) {
    const rocksdb::Status written = WriteTable();
    ASSERT_TRUE(written.ok()) << written.ToString();
  }
  EXPECT_FALSE(database_->disk->blocks_writes());
}

TEST_F(CompactionRoomTest, CompactionGoesOnWhenThereIsRoom) {
  WriteTablesUntilCompactionIsRefused();
  const int refusals = env_.refusals();
  EXPECT_GT(refusals, 0);
  env_.Refuse(false);
  EXPECT_EQ(database_->disk->TryResume(database_->db.get()), DiskWatch::Outcome::kResumed);
  EXPECT_TRUE(database_->disk->trouble().ok());
  const auto compacted = [this] {
    return database_->statistics->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  };
  for (int tries = 0; tries < 1000 && compacted() == 0; ++tries) {
    ASSERT_TRUE(WriteTable().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(compacted(), 0u);
  EXPECT_TRUE(database_->disk->trouble().ok());
}

}  // namespace
}  // namespace tacho::storage

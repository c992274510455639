#include "storage/history/piece_cache.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"

namespace tacho::storage {
namespace {

constexpr uint64_t kPiece = PieceCache::kPieceBytes;
constexpr char kKey[] = "v1/shards/0000/days/20000/0000000000000001-0000000000000001.sst";

class PieceCacheTest : public testing::Test {
 protected:
  PieceCacheTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    // Pieces differ.
    object_.resize(5 * kPiece + 777);
    for (uint64_t i = 0; i + 8 < object_.size(); i += 64) std::memcpy(&object_[i], &i, sizeof(i));
    Open();
  }

  void Open(uint64_t max_bytes = 100 * kPiece, uint64_t memory_bytes = 0) {
    auto cache = PieceCache::Open({.path = "/cache",
                                   .max_bytes = max_bytes,
                                   .memory_bytes = memory_bytes,
                                   .env = env_.get()});
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  absl::StatusOr<PiecePtr> Get(uint64_t piece, uint64_t run = 1) {
    return cache_->Get({.key = kKey, .object_bytes = object_.size(), .piece = piece, .run = run},
                       [this](uint64_t offset, uint64_t bytes) -> absl::StatusOr<std::string> {
                         ++fetches_;
                         if (!refusal_.ok()) return refusal_;
                         return object_.substr(offset, bytes);
                       });
  }
  void ExpectPiece(uint64_t piece, uint64_t run = 1) {
    const auto got = Get(piece, run);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(**got == object_.substr(piece * kPiece, kPiece)) << "piece " << piece;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    std::vector<std::string> pieces;
    EXPECT_TRUE(env_->GetChildren("/cache", &names).ok());
    for (std::string& name : names) {
      if (name != "." && name != "..") pieces.push_back("/cache/" + name);
    }
    return pieces;
  }

  std::unique_ptr<rocksdb::Env> env_;
  std::string object_;
  std::unique_ptr<PieceCache> cache_;
  absl::Status refusal_;
  std::atomic<int> fetches_ = 0;
};

TEST_F(PieceCacheTest, APieceIsFetchedOnceAndComesFromTheDiskAfterARestart) {
  ExpectPiece(2);
  ExpectPiece(2);
  EXPECT_EQ(fetches_, 1);
  Open();
  ExpectPiece(2);
  EXPECT_EQ(fetches_, 1);
}

TEST_F(PieceCacheTest, ARunIsOneFetchAndEndsAtWhatIsThereOrAtTheObjectsEnd) {
  ExpectPiece(4);
  ExpectPiece(0, 99);  // 0 to 3.
  for (uint64_t piece = 1; piece < 5; ++piece) ExpectPiece(piece);
  EXPECT_EQ(fetches_, 2);
  ExpectPiece(5, 99);
  EXPECT_EQ(fetches_, 3);
}

TEST_F(PieceCacheTest, DamagedCutAndForeignFilesAreNeverServed) {
  ExpectPiece(0);
  ASSERT_EQ(Files().size(), 1u);
  const std::string file = Files().front();
  std::string whole;
  ASSERT_TRUE(rocksdb::ReadFileToString(env_.get(), file, &whole).ok());
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  const std::vector<std::string> bad = {flipped, whole.substr(0, whole.size() / 2), "",
                                        whole + "more"};
  for (const std::string& bytes : bad) {
    ASSERT_TRUE(rocksdb::WriteStringToFile(env_.get(), bytes, file).ok());
    Open();
    const int before = fetches_;
    ExpectPiece(0);
    EXPECT_EQ(fetches_, before + 1);
  }
  // The file of another piece under this name: its checksum is right.
  ExpectPiece(1);
  for (const std::string& name : Files()) {
    if (name == file) continue;
    ASSERT_TRUE(rocksdb::ReadFileToString(env_.get(), name, &whole).ok());
  }
  ASSERT_TRUE(rocksdb::WriteStringToFile(env_.get(), whole, file).ok());
  Open();
  ExpectPiece(0);
}

TEST_F(PieceCacheTest, AFileThatACrashLeftUnfinishedGoes) {
  ExpectPiece(0);
  ASSERT_TRUE(rocksdb::WriteStringToFile(env_.get(), "half", Files().front() + ".new").ok());
  Open();
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(PieceCacheTest, TheDiskHoldsNoMoreThanItsBoundAndLosesWhatWasUsedLeastRecently) {
  Open(3 * kPiece);
  ExpectPiece(0);
  ExpectPiece(1);
  ExpectPiece(2);
  ExpectPiece(0);
  ExpectPiece(3);  // 1 goes, the least recently used.
  EXPECT_LE(cache_->stats().bytes, 3 * kPiece);
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_EQ(fetches_, 4);
  ExpectPiece(0);
  EXPECT_EQ(fetches_, 4);
  ExpectPiece(1);
  EXPECT_EQ(fetches_, 5);
  // A smaller bound takes hold at the start.
  Open(kPiece + 1000);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(PieceCacheTest, WithoutADiskBoundNothingIsWritten) {
  Open(0, 2 * kPiece);
  ExpectPiece(0);
  ExpectPiece(0);
  EXPECT_EQ(fetches_, 1);
  EXPECT_TRUE(Files().empty());
}

TEST_F(PieceCacheTest, AFailedFetchIsReturnedAndTriedAgain) {
  refusal_ = absl::UnavailableError("away");
  EXPECT_EQ(Get(0, 3).status(), refusal_);
  refusal_ = absl::OkStatus();
  ExpectPiece(0);
  ExpectPiece(1);
}

TEST_F(PieceCacheTest, AnObjectThatIsShorterThanWrittenIsDataLossWithItsKey) {
  const std::string whole = object_;
  const auto got =
      cache_->Get({.key = kKey, .object_bytes = object_.size(), .piece = 5},
                  [&](uint64_t offset, uint64_t bytes) { return whole.substr(offset, bytes - 1); });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(got.status().message()), testing::HasSubstr(kKey));
}

TEST_F(PieceCacheTest, ForgottenObjectsLeaveTheDisk) {
  ExpectPiece(0);
  cache_->Forget(kKey);
  EXPECT_TRUE(Files().empty());
  EXPECT_EQ(cache_->stats().bytes, 0u);
}

TEST_F(PieceCacheTest, ManyThreadsFetchEachPieceOnce) {
  Open(100 * kPiece, 100 * kPiece);
  std::atomic<int> fetches = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t j = 0; j < 5; ++j) {
        const uint64_t piece = (j + static_cast<uint64_t>(i)) % 5;
        const auto got = cache_->Get({.key = kKey, .object_bytes = object_.size(), .piece = piece},
                                     [&](uint64_t offset, uint64_t bytes) {
                                       ++fetches;
                                       absl::SleepFor(absl::Milliseconds(2));
                                       return object_.substr(offset, bytes);
                                     });
        ASSERT_TRUE(got.ok());
        EXPECT_TRUE(**got == object_.substr(piece * kPiece, kPiece));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetches, 5);
}

}  // namespace
}  // namespace tacho::storage

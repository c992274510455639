// What a store holds at once is bounded: memory of open rows, length of the journal.
#include <algorithm>
#include <future>
#include <memory>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

class StoreBoundsTest : public StoreFixture {
 protected:
  static constexpr size_t kColumns = 10;
  static constexpr int64_t kRowsPerMessage = 50;

  std::vector<LayoutPtr> RegisterTasks(uint32_t tasks) {
    std::vector<std::string> metrics;
    for (size_t i = 0; i < kColumns; ++i) metrics.push_back("m" + std::to_string(i));
    std::vector<LayoutPtr> layouts;
    for (uint32_t task = 0; task < tasks; ++task) {
      layouts.push_back(Register(Definition("job", metrics, task)));
    }
    return layouts;
  }

  // Appends message number `message` of a layout: 50 rows, all of whose values differ.
  absl::Status AppendMessage(const LayoutPtr& layout, int64_t message) {
    std::vector<int64_t> times;
    std::vector<double> values;
    for (int64_t row = 0; row < kRowsPerMessage; ++row) {
      times.push_back(message * kRowsPerMessage + row);
      for (size_t i = 0; i < kColumns; ++i) values.push_back(ValueOf(times.back(), i));
    }
    return Append(layout, times, times, values);
  }
  static double ValueOf(int64_t time, size_t column) {
    return static_cast<double>(time) + static_cast<double>(column) / 16;
  }

  // Appends as often as it takes, like an agent that has to wait.
  void AppendPatiently(const LayoutPtr& layout, int64_t message) {
    absl::Status status = AppendMessage(layout, message);
    for (int i = 0; i < 1000 && absl::IsResourceExhausted(status); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      status = AppendMessage(layout, message);
    }
    ASSERT_TRUE(status.ok()) << status;
  }

  // What a crash at this moment would leave.
  static void CopyFiles(rocksdb::Env* from, rocksdb::Env* to) {
    std::vector<std::string> names;
    ASSERT_TRUE(from->GetChildren("/store", &names).ok());
    ASSERT_TRUE(to->CreateDirIfMissing("/store").ok());
    for (const std::string& name : names) {
      if (name == "LOCK" || name == "." || name == "..") continue;
      std::string bytes;
      ASSERT_TRUE(rocksdb::ReadFileToString(from, "/store/" + name, &bytes).ok()) << name;
      ASSERT_TRUE(rocksdb::WriteStringToFile(to, bytes, "/store/" + name).ok()) << name;
    }
  }

  void ExpectEverything(uint32_t tasks, int64_t messages) {
    const auto series = store_->FindSeries({.job = "job", .metrics = {"m3"}}, tasks);
    ASSERT_TRUE(series.ok()) << series.status();
    ASSERT_EQ(series->size(), tasks);
    for (const SeriesPtr& one : *series) {
      const SampleBlock all = ReadAll(one);
      ASSERT_EQ(all.size(), messages * kRowsPerMessage);
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all.times[i], i);
        ASSERT_EQ(all.steps[i], i);
        ASSERT_EQ(all.values[i], ValueOf(all.times[i], 3));
      }
    }
  }
};

TEST_F(StoreBoundsTest, OpenRowsKeepWithinTheirMemoryAndNoneIsLost) {
  options_.background = true;
  options_.open_bytes = 256 << 10;
  options_.open_raw_bytes = 64 << 10;
  Reopen();
  const auto layouts = RegisterTasks(8);
  uint64_t most = 0;
  for (int64_t message = 0; message < 60; ++message) {
    for (const LayoutPtr& layout : layouts) {
      AppendPatiently(layout, message);
      most = std::max(most, store_->Stats().open_bytes);
    }
  }
  const StoreStats stats = store_->Stats();
  EXPECT_LE(most, 2 * options_.open_bytes + (64u << 10)) << "a message may go beyond";
  EXPECT_LE(stats.open_raw_bytes, stats.open_bytes);
  EXPECT_GT(stats.rows_sealed, 0u) << "2.3 MB of rows do not fit";
  ExpectEverything(8, 60);
  Reopen();
  ExpectEverything(8, 60);
}

TEST_F(StoreBoundsTest, RowsAreRefusedWhileSealingIsBehindAndTakenAfterwards) {
  options_.open_bytes = 32 << 10;
  Reopen();  // Nobody seals in the background.
  const auto layouts = RegisterTasks(1);
  int64_t message = 0;
  absl::Status status;
  while (message < 100 && (status = AppendMessage(layouts[0], message)).ok()) ++message;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_GE(message, 10) << "twice 32 KiB, 4.8 kB a message";
  EXPECT_LE(message, 16);
  EXPECT_FALSE(AppendMessage(layouts[0], message).ok()) << "until something is sealed";
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(AppendMessage(layouts[0], message).ok());
  ExpectEverything(1, message + 1);
}

TEST_F(StoreBoundsTest, SendersWhoWaitForEachAcknowledgementAreSlowedDownRatherThanRefused) {
  options_.background = true;
  options_.open_bytes = 64 << 10;
  options_.open_raw_bytes = 16 << 10;
  Reopen();
  const auto layouts = RegisterTasks(4);
  for (int64_t message = 0; message < 60; ++message) {
    for (const LayoutPtr& layout : layouts) {
      const absl::Status status = AppendMessage(layout, message);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  ExpectEverything(4, 60);
}

TEST_F(StoreBoundsTest, TheJournalKeepsItsLengthThoughOneLayoutHardlyEverSpeaks) {
  options_.background = true;
  options_.journal_bytes = 200'000;
  Reopen();
  const auto layouts = RegisterTasks(2);
  ASSERT_TRUE(AppendMessage(layouts[1], 0).ok()) << "would pin the journal for ten minutes";
  uint64_t most = 0;
  for (int64_t message = 0; message < 200; ++message) {
    AppendPatiently(layouts[0], message);
    most = std::max(most, store_->Stats().journal_bytes);
  }
  EXPECT_LE(most, 2 * options_.journal_bytes + 10'000);
  for (int i = 0; i < 1000 && store_->Stats().journal_bytes > options_.journal_bytes; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_LE(store_->Stats().journal_bytes, options_.journal_bytes);
  EXPECT_EQ(ReadAll(Find("job", "m1")).size(), 200 * kRowsPerMessage);
}

TEST_F(StoreBoundsTest, RecoveryNeedsNoMoreMemoryThanWasAllowed) {
  options_.open_bytes = 1 << 30;
  Reopen();
  const auto layouts = RegisterTasks(4);
  for (int64_t message = 0; message < 20; ++message) {
    for (const LayoutPtr& layout : layouts) ASSERT_TRUE(AppendMessage(layout, message).ok());
  }
  const uint64_t before = store_->Stats().open_bytes;
  const std::unique_ptr<rocksdb::Env> crashed(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  ASSERT_NO_FATAL_FAILURE(CopyFiles(env_.get(), crashed.get()));
  StoreOptions options = options_;
  options.env = crashed.get();
  options.open_bytes = before / 8;
  options.open_raw_bytes = before / 32;
  ASSERT_TRUE(store_->Close().ok());
  auto recovered = Store::Open(options);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  store_ = *std::move(recovered);
  EXPECT_LE(store_->Stats().open_bytes, options.open_bytes);
  EXPECT_GT(store_->Stats().open_bytes, 0u);
  ExpectEverything(4, 20);
  ASSERT_TRUE(store_->Seal().ok());
  ExpectEverything(4, 20);
  store_.reset();  // Before its file system goes.
}

}  // namespace
}  // namespace tacho::storage

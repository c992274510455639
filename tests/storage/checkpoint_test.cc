// A copy of the store that is made while it takes rows.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/check_store.h"
#include "storage/store.h"
#include "tests/support/next_block.h"

namespace tacho::storage {
namespace {

// On a real file system: hard links are what a checkpoint is about.
class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    root_ = testing::TempDir() + "checkpoint_test." + std::to_string(::getpid());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    store_ = Open(root_ + "/store");
    layout_ = store_->RegisterLayout(Definition())->layout;
  }
  ~CheckpointTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }

  static std::unique_ptr<Store> Open(const std::string& path) {
    StoreOptions options;
    options.path = path;
    options.retention = absl::ZeroDuration();
    options.seal_rows = 16;
    options.seal_age = absl::Seconds(1);
    options.commit_spacing = absl::ZeroDuration();
    auto store = Store::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) std::abort();
    return *std::move(store);
  }
  static LayoutDefinition Definition() {
    LayoutDefinition definition;
    definition.source = {"job", 0, 0, "host"};
    definition.has_steps = true;
    definition.series.push_back({{"loss", MetricType::kGauge, "1", "help"}, {}});
    return definition;
  }

  // Row number `row`, with the sequence row + 1; returns when it is durable.
  absl::Status Append(int64_t row) {
    std::promise<absl::Status> result;
    const int64_t time = row * 1'000'000'000;
    const double value = static_cast<double>(row) / 3;
    store_->AppendRows({"agent", 7, static_cast<uint64_t>(row) + 1}, layout_,
                       {{&time, 1}, {&row, 1}, {&value, 1}},
                       [&](const absl::Status& status) { result.set_value(status); });
    return result.get_future().get();
  }

  // The steps that are stored, after checking that each has its own time and value.
  static std::vector<int64_t> StepsIn(Store& store) {
    const auto series = store.FindSeries({.job = "job", .metrics = {"loss"}}, 10);
    EXPECT_TRUE(series.ok() && series->size() == 1);
    std::vector<int64_t> steps;
    const auto reader = store.Read(series->front(), {});
    SampleBlock block;
    for (;;) {
      const auto more = NextBlock(reader, &block);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return steps;
      for (size_t i = 0; i < block.steps.size(); ++i) {
        EXPECT_EQ(block.times[i], block.steps[i] * 1'000'000'000);
        EXPECT_EQ(block.values[i], static_cast<double>(block.steps[i]) / 3);
        steps.push_back(block.steps[i]);
      }
    }
  }

  std::string root_;
  std::unique_ptr<Store> store_;
  LayoutPtr layout_;
};

TEST_F(CheckpointTest, HoldsWhatWasAcknowledgedBeforeItWhileRowsKeepComing) {
  constexpr int kCopies = 12;
  std::atomic<int64_t> acknowledged = -1;
  std::atomic<bool> stop = false;
  std::thread appender([&] {
    for (int64_t row = 0; !stop; ++row) {
      const absl::Status status = Append(row);
      EXPECT_TRUE(status.ok()) << status;
      acknowledged = row;
    }
  });
  std::vector<int64_t> before;
  for (int copy = 0; copy < kCopies; ++copy) {
    // Some rows further on each time, so that logs, tables and seals are met in all states.
    const int64_t wanted = acknowledged + 40;
    while (acknowledged < wanted) std::this_thread::yield();
    before.push_back(acknowledged);
    const absl::Status copied = store_->Checkpoint(absl::StrCat(root_, "/copy", copy));
    ASSERT_TRUE(copied.ok()) << copied;
  }
  stop = true;
  appender.join();
  for (int copy = 0; copy < kCopies; ++copy) {
    const auto opened = Open(absl::StrCat(root_, "/copy", copy));
    const std::vector<int64_t> steps = StepsIn(*opened);
    ASSERT_GE(steps.size(), static_cast<size_t>(before[copy] + 1)) << "acknowledged before";
    for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], static_cast<int64_t>(i));
    // Rows and what is known to be durable are of the same moment.
    EXPECT_EQ(opened->DurableSequences("agent", 7).watermark(), steps.size());
  }
}

// Its log is empty, and an empty one RocksDB does not copy.
TEST_F(CheckpointTest, OfAStoreThatHasJustBeenOpened) {
  for (int64_t row = 0; row < 40; ++row) ASSERT_TRUE(Append(row).ok());
  for (const char* copy : {"/copy1", "/copy2"}) {
    layout_ = nullptr;
    store_.reset();
    store_ = Open(root_ + "/store");
    const absl::Status copied = store_->Checkpoint(root_ + copy);
    ASSERT_TRUE(copied.ok()) << copied;
    EXPECT_EQ(StepsIn(*Open(root_ + copy)).size(), 40u);
  }
}

TEST_F(CheckpointTest, IsAStoreOfItsOwn) {
  for (int64_t row = 0; row < 40; ++row) ASSERT_TRUE(Append(row).ok());
  ASSERT_TRUE(store_->Checkpoint(root_ + "/copy").ok());
  for (int64_t row = 40; row < 60; ++row) ASSERT_TRUE(Append(row).ok());
  layout_ = nullptr;
  store_ = Open(root_ + "/copy");
  layout_ = store_->RegisterLayout(Definition())->layout;
  for (int64_t row = 40; row < 45; ++row) ASSERT_TRUE(Append(row).ok());
  EXPECT_EQ(StepsIn(*store_).size(), 45u);
  store_.reset();
  std::filesystem::remove_all(root_ + "/copy");
  EXPECT_EQ(StepsIn(*Open(root_ + "/store")).size(), 60u) << "the links of the copy are gone";
}

TEST_F(CheckpointTest, IsFoundWholeOrDamagedWithoutBeingChanged) {
  for (int64_t row = 0; row < 100; ++row) ASSERT_TRUE(Append(row).ok());
  ASSERT_TRUE(store_->Seal().ok());
  for (int64_t row = 100; row < 110; ++row) ASSERT_TRUE(Append(row).ok());
  store_ = nullptr;  // Closing it writes tables.
  store_ = Open(root_ + "/store");
  layout_ = store_->RegisterLayout(Definition())->layout;
  for (int64_t row = 110; row < 120; ++row) ASSERT_TRUE(Append(row).ok());
  const std::string copy = root_ + "/copy";
  ASSERT_TRUE(store_->Checkpoint(copy).ok());
  EXPECT_FALSE(std::filesystem::exists(copy + "/COMMIT_MARK")) << "it is the store's own";
  std::map<std::string, uintmax_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(copy)) {
    sizes[entry.path()] = entry.file_size();
  }
  const auto contents = CheckStore(copy);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->jobs, 1u);
  EXPECT_EQ(contents->series, 1u);
  EXPECT_EQ(contents->days, 1u);
  EXPECT_EQ(contents->journal_entries, 10u);
  for (const auto& [path, size] : sizes) EXPECT_EQ(std::filesystem::file_size(path), size) << path;

  int tables = 0;
  for (const auto& [path, size] : sizes) {
    if (!absl::EndsWith(path, ".sst")) continue;
    ++tables;
    // The tables are shared with the store: a damaged one is another file.
    const std::string whole = path + ".whole";
    std::filesystem::rename(path, whole);
    std::filesystem::copy_file(whole, path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 3));
    const int byte = file.peek();
    file.put(static_cast<char>(~byte));
    file.close();
    EXPECT_EQ(CheckStore(copy).status().code(), absl::StatusCode::kDataLoss) << path;
    std::filesystem::rename(whole, path);
  }
  EXPECT_GT(tables, 1);
  EXPECT_TRUE(CheckStore(copy).ok());
  EXPECT_EQ(CheckStore(root_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, PlaceThatIsTakenIsRefused) {
  ASSERT_TRUE(Append(0).ok());
  EXPECT_FALSE(store_->Checkpoint(root_).ok());
  EXPECT_EQ(store_->Checkpoint(root_ + "/missing/copy").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Append(1).ok()) << "the store goes on";
}

}  // namespace
}  // namespace tacho::storage

// A store that is killed: what was acknowledged is there once, whatever was sealed when.
#include <unistd.h>

#include <filesystem>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;

namespace fs = std::filesystem;

// On the real file system: a copy of the directory of an open store is what a kill leaves behind.
class StoreRecoveryTest : public StoreFixture {
 protected:
  StoreRecoveryTest() {
    root_ = fs::path(testing::TempDir()) /
            ("recovery-" + std::to_string(::getpid()) + "-" +
             testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
    options_.env = nullptr;
    options_.path = (root_ / "0").string();
    Reopen();
  }
  ~StoreRecoveryTest() override {
    store_.reset();
    fs::remove_all(root_);
  }

  // Goes on with a copy, as if the process had been killed at this moment.
  void Kill() {
    const std::string next = (root_ / std::to_string(++generation_)).string();
    // A log that RocksDB removes meanwhile makes a copy fail: then another is made.
    std::error_code error;
    do {
      fs::remove_all(next);
      fs::copy(options_.path, next, fs::copy_options::recursive, error);
    } while (error);
    options_.path = next;
    store_.reset();  // Seals and closes the original, which nobody opens again.
    Reopen();
  }

  fs::path root_;
  int generation_ = 0;
};

TEST_F(StoreRecoveryTest, AcknowledgedRowsAreThereAfterAKillSealedOrNot) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {1, 2}, {1, 2}, {1, 2}, {"agent", 1, 1}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(Append(layout, {3}, {3}, {3}, {"agent", 1, 2}).ok());
  Kill();
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1, 2, 3));
  EXPECT_EQ(store_->Stats().open_rows, 1u) << "sealed rows are not replayed";
  EXPECT_EQ(store_->DurableSequences("agent", 1).watermark(), 2u);
  EXPECT_EQ(store_->FindJob("job")->summary.extent.last_step, 3);
}

// Kills at random moments between appends, seals and days, against a model kept outside.
TEST_F(StoreRecoveryTest, RandomKillsLoseAndDoubleNothing) {
  std::mt19937_64 random(7);
  constexpr size_t kTasks = 3;
  std::vector<std::vector<double>> model(kTasks);
  uint64_t sequence = 0;
  const auto layouts = [&] {
    std::vector<LayoutPtr> out;
    for (uint32_t task = 0; task < kTasks; ++task) {
      out.push_back(Register(Definition("job", {"loss"}, task)));
    }
    return out;
  };
  std::vector<LayoutPtr> current = layouts();
  for (int round = 0; round < 300; ++round) {
    const size_t task = random() % kTasks;
    const auto step = static_cast<int64_t>(model[task].size());
    const double value = static_cast<double>(random() % 1000);
    ASSERT_TRUE(
        Append(current[task], {step * kDayNs / 5}, {step}, {value}, {"agent", 1, ++sequence}).ok());
    model[task].push_back(value);
    if (random() % 20 == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (random() % 30 == 0) {
      Kill();
      current = layouts();
      // What the agent is not sure of it sends again.
      ASSERT_TRUE(
          Append(current[task], {step * kDayNs / 5}, {step}, {value + 1}, {"agent", 1, sequence})
              .ok());
    }
  }
  Kill();
  for (uint32_t task = 0; task < kTasks; ++task) {
    const auto matcher = Matcher::Create("task", Matcher::Op::kEqual, std::to_string(task));
    const auto series = store_->FindSeries({"job", {"loss"}, {*matcher}}, 10);
    ASSERT_EQ(series->size(), 1u);
    EXPECT_EQ(ReadAll(series->front()).values, model[task]) << "task " << task;
  }
}

TEST_F(StoreRecoveryTest, TheJournalIsTrimmedAndItsPositionsGoOn) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (int64_t i = 0; i < 50; ++i) ASSERT_TRUE(Append(layout, {i}, {i}, {1.0}).ok());
  EXPECT_EQ(store_->Stats().journal_entries, 50u);
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(Append(layout, {50}, {50}, {1.0}).ok());
  EXPECT_EQ(store_->Stats().journal_entries, 1u);
  Kill();
  EXPECT_EQ(ReadAll(Find("job", "loss")).size(), 51u);
}

TEST_F(StoreRecoveryTest, AnotherFormatVersionIsRefusedByNumber) {
  store_.reset();
  rocksdb::DB* raw = nullptr;
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, options_.path, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  ASSERT_TRUE(rocksdb::DB::Open({}, options_.path, families, &handles, &raw).ok());
  ASSERT_TRUE(raw->Put({}, "format", "99").ok());
  for (auto* handle : handles) raw->DestroyColumnFamilyHandle(handle);
  delete raw;
  const auto store = Store::Open(options_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(store.status().ToString().find("99"), std::string::npos);
}

TEST_F(StoreRecoveryTest, ADatabaseWithoutFormatIsTakenIfItIsEmptyAndRefusedIfNot) {
  for (const bool is_empty : {true, false}) {
    options_.path = (root_ / (is_empty ? "empty" : "foreign")).string();
    rocksdb::Options create;
    create.create_if_missing = true;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(create, options_.path, &raw).ok());
    if (!is_empty) {
      ASSERT_TRUE(raw->Put({}, "key", "of another program").ok());
    }
    delete raw;
    const auto store = Store::Open(options_);
    EXPECT_EQ(store.status().code(),
              is_empty ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition);
  }
}

// On a full disk the second line of it would end the process: see storage/db/directory_check.h.
TEST_F(StoreRecoveryTest, RocksDbWritesNoLogBesideTheData) {
  EXPECT_TRUE(fs::exists(fs::path(options_.path) / "CURRENT"));
  EXPECT_FALSE(fs::exists(fs::path(options_.path) / "LOG"));
}

TEST_F(StoreRecoveryTest, ADirectoryInUseIsRefused) {
  const auto second = Store::Open(options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
}

}  // namespace
}  // namespace tacho::storage

// The spool on a file system in memory that can be made to refuse, and on the real one.
#include "agent/spool.h"

#include <bit>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "storage/journal.h"
#include "tests/support/faulty_env.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Layout MakeLayout(const std::string& job, int width = 1, bool has_steps = false) {
  v1::Layout layout;
  layout.mutable_source()->set_job(job);
  layout.mutable_source()->set_host("h");
  layout.set_has_steps(has_steps);
  for (int i = 0; i < width; ++i) {
    layout.add_series()->mutable_metric()->set_name(absl::StrCat("metric_", i));
  }
  return layout;
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() { Reopen(); }

  void Reopen() {
    spool_.reset();
    auto spool =
        Spool::Open({.path = "/spool",
                     .max_bytes = max_bytes_,
                     .now = [this] { return now_; },
                     .log = [this](LogLevel, absl::string_view line) { log_.emplace_back(line); },
                     .env = &env_,
                     .reopen_interval = absl::ZeroDuration()});
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  // As a flipped bit on the disk does.
  void Damage(char position) {
    spool_.reset();
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {rocksdb::kDefaultColumnFamilyName, {}}, {storage::Journal::kColumnFamily, {}}};
    rocksdb::Options options;
    options.env = &env_;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, "/spool", families, &handles, &db).ok());
    const std::string key = std::string(7, '\0') + position;
    EXPECT_TRUE(db->Put({}, handles[1], key, "damaged").ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    delete db;
    Reopen();
  }

  uint32_t Define(const v1::Layout& layout) { return *spool_->DefineLayout(layout); }

  absl::Status AppendRow(uint32_t layout, double value, const RowSink::Checkpoint& at = {}) {
    const int64_t time = 1'700'000'000'000'000'000;
    return spool_->AppendRows(layout, {&time, 1}, {}, {&value, 1}, at);
  }

  std::vector<Spool::Entry> ReadAll(uint64_t sequence = 1) {
    EXPECT_TRUE(spool_->Sync().ok());
    std::vector<Spool::Entry> all;
    for (;;) {  // What lies before a damaged entry is read by itself.
      auto entries = spool_->Read(all.empty() ? sequence : all.back().sequence + 1, UINT64_MAX);
      EXPECT_TRUE(entries.ok()) << entries.status();
      if (!entries.ok() || entries->empty()) return all;
      for (Spool::Entry& entry : *entries) all.push_back(std::move(entry));
    }
  }

  std::vector<double> FirstValues() {
    std::vector<double> values;
    for (const auto& entry : ReadAll()) {
      if (entry.message.has_batch()) values.push_back(entry.message.batch().values(0));
    }
    return values;
  }

  tacho::testing::FaultyEnv env_;
  uint64_t max_bytes_ = 1u << 30;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::vector<std::string> log_;
  std::unique_ptr<Spool> spool_;
};

TEST_F(SpoolTest, EntriesCarryTheirSequenceAndKeepTheirOrder) {
  const uint32_t layout = Define(MakeLayout("job"));
  ASSERT_TRUE(AppendRow(layout, 1).ok());
  v1::Event event;
  event.set_kind("ended");
  event.set_sequence(99);
  ASSERT_TRUE(spool_->AppendEvent(event, {}).ok());
  v1::Attributes attributes;
  attributes.set_job("job");
  ASSERT_TRUE(spool_->AppendAttributes(attributes, {}).ok());

  const auto entries = ReadAll();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].message.batch().sequence(), 1u);
  EXPECT_EQ(entries[1].message.event().sequence(), 2u);
  EXPECT_EQ(entries[2].message.attributes().sequence(), 3u);
  EXPECT_EQ(entries[2].sequence, 3u);
}

TEST_F(SpoolTest, KeepsEveryBitOfAValue) {
  const std::vector<double> values = {std::numeric_limits<double>::quiet_NaN(), -0.0,
                                      std::numeric_limits<double>::infinity(),
                                      std::bit_cast<double>(uint64_t{0x7ff0000000000002})};
  const std::vector<int64_t> times = {1};
  const std::vector<int64_t> steps = {-7};
  ASSERT_TRUE(
      spool_->AppendRows(Define(MakeLayout("job", 4, true)), times, steps, values, {}).ok());
  const v1::Batch batch = ReadAll().at(0).message.batch();
  ASSERT_EQ(batch.values_size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(batch.values(i)), std::bit_cast<uint64_t>(values.at(i))) << i;
  }
  EXPECT_EQ(batch.steps(0), -7);
}

TEST_F(SpoolTest, OnlySyncedEntriesAreRead) {
  ASSERT_TRUE(AppendRow(Define(MakeLayout("job")), 1).ok());
  EXPECT_THAT(*spool_->Read(1, UINT64_MAX), IsEmpty());
  ASSERT_TRUE(spool_->Sync().ok());
  EXPECT_EQ(spool_->Read(1, UINT64_MAX)->size(), 1u);
}

TEST_F(SpoolTest, EntriesFindTheirLayoutAfterARestart) {
  ASSERT_TRUE(AppendRow(Define(MakeLayout("a")), 1).ok());
  ASSERT_TRUE(AppendRow(Define(MakeLayout("b")), 2).ok());
  const uint64_t generation = spool_->generation();
  Reopen();
  EXPECT_EQ(spool_->generation(), generation);
  const auto entries = ReadAll();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(spool_->FindLayout(entries[0].message.batch().layout())->source().job(), "a");
  EXPECT_EQ(spool_->FindLayout(entries[1].message.batch().layout())->source().job(), "b");
  EXPECT_EQ(Define(MakeLayout("b")), entries[1].message.batch().layout());
  ASSERT_TRUE(AppendRow(Define(MakeLayout("c")), 3).ok());
  EXPECT_EQ(ReadAll().back().sequence, 3u);
}

TEST_F(SpoolTest, LayoutsOfEarlierRunsGoWithTheirLastEntry) {
  const uint32_t dead = Define(MakeLayout("dead"));
  const uint32_t alive = Define(MakeLayout("alive"));
  ASSERT_TRUE(AppendRow(dead, 1).ok());
  ASSERT_TRUE(AppendRow(alive, 2).ok());
  Reopen();
  ASSERT_EQ(Define(MakeLayout("alive")), alive);
  ASSERT_TRUE(spool_->Trim(2).ok());
  EXPECT_TRUE(spool_->FindLayout(dead).ok()) << "entry 2 might refer to it";
  ASSERT_TRUE(spool_->Trim(3).ok());
  EXPECT_EQ(spool_->FindLayout(dead).status().code(), absl::StatusCode::kNotFound);
  Reopen();
  EXPECT_EQ(spool_->FindLayout(dead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(spool_->FindLayout(alive).ok());
}

TEST_F(SpoolTest, LargeRowsAreSplitAndRefusedIfTheyDoNotFit) {
  const uint32_t layout = Define(MakeLayout("job", 10, true));
  const std::vector<int64_t> times(5000, 1);
  std::vector<int64_t> steps(5000);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i);
  std::vector<double> values(50'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  ASSERT_TRUE(spool_->AppendRows(layout, times, steps, values, {"k", "v"}).ok());

  size_t rows = 0;
  for (const auto& entry : ReadAll()) {
    const v1::Batch& batch = entry.message.batch();
    EXPECT_LE(entry.bytes, 56u << 10);
    ASSERT_EQ(batch.values_size(), batch.steps_size() * 10);
    EXPECT_EQ(batch.steps(0), static_cast<int64_t>(rows));
    EXPECT_EQ(batch.values(0), static_cast<double>(rows * 10));
    rows += static_cast<size_t>(batch.times_unix_ns_size());
  }
  EXPECT_EQ(rows, 5000u);

  EXPECT_EQ(spool_->AppendRows(layout, times, {}, values, {}).code(),
            absl::StatusCode::kInvalidArgument);
  values.pop_back();
  EXPECT_EQ(spool_->AppendRows(layout, times, steps, values, {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AppendRow(77, 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(spool_->DefineLayout(v1::Layout()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SpoolTest, CollectorsLimitsMakeLaterBatchesSmaller) {
  const uint32_t layout = Define(MakeLayout("job"));
  spool_->LimitBatches({.max_bytes = 1000, .max_rows = 3});
  const std::vector<int64_t> times(10, 1);
  const std::vector<double> values(10, 1);
  ASSERT_TRUE(spool_->AppendRows(layout, times, {}, values, {}).ok());
  EXPECT_EQ(ReadAll().size(), 4u);
}

// The disk refuses: no row, no checkpoint. It has room again: rows and checkpoint, and sequences
// without a hole.
TEST_F(SpoolTest, CheckpointsMoveWithTheirRowsOrNotAtAll) {
  const uint32_t layout = Define(MakeLayout("job"));
  ASSERT_TRUE(AppendRow(layout, 1, {"host/x", "1"}).ok());
  env_.RefuseWrites(true);
  EXPECT_EQ(AppendRow(layout, 2, {"host/x", "2"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(spool_->ReadCheckpoint("host/x"), "1");
  env_.RefuseWrites(false);
  ASSERT_TRUE(AppendRow(layout, 3, {"host/x", "3"}).ok());
  EXPECT_EQ(spool_->ReadCheckpoint("host/x"), "3");
  Reopen();
  EXPECT_EQ(spool_->ReadCheckpoint("host/x"), "3");
  EXPECT_THAT(FirstValues(), ElementsAre(1, 3));
  EXPECT_EQ(ReadAll().back().sequence, 2u);
  ASSERT_TRUE(spool_->WriteCheckpoint({"host/x", ""}).ok());
  EXPECT_EQ(spool_->ReadCheckpoint("host/x"), "");
  Reopen();
  EXPECT_EQ(spool_->ReadCheckpoint("host/x"), "");
}

TEST_F(SpoolTest, FullSpoolDropsTheOldestAndSaysSoInAGap) {
  max_bytes_ = 100'000;
  Reopen();
  const uint32_t layout = Define(MakeLayout("job", 100));
  const std::vector<int64_t> times(1, 1);
  for (int i = 0; i < 500; ++i) {
    const std::vector<double> values(100, i);
    ASSERT_TRUE(spool_->AppendRows(layout, times, {}, values, {}).ok());
    ASSERT_LE(spool_->Stats().bytes, max_bytes_ + 1000);
  }
  // What is kept and what the gaps name is everything, and nothing is both.
  uint64_t rows_kept = 0;
  uint64_t rows_lost = 0;
  std::set<uint64_t> accounted;
  for (const auto& entry : ReadAll()) {
    EXPECT_TRUE(accounted.insert(entry.sequence).second);
    if (entry.message.has_batch()) ++rows_kept;
    if (!entry.message.has_gap()) continue;
    const v1::Gap& gap = entry.message.gap();
    rows_lost += gap.rows();
    for (uint64_t lost = gap.lost().first(); lost <= gap.lost().last(); ++lost) {
      EXPECT_TRUE(accounted.insert(lost).second) << lost;
    }
  }
  EXPECT_EQ(accounted.size(), spool_->end() - 1);
  EXPECT_GT(rows_kept, 50u);
  EXPECT_EQ(rows_kept + rows_lost, 500u);
  EXPECT_EQ(rows_lost, spool_->Stats().dropped_rows);
  EXPECT_EQ(spool_->Stats().appended_rows, 500u);
}

TEST_F(SpoolTest, WhatIsDurableAheadOfABacklogIsNotCountedAsLost) {
  max_bytes_ = 1u << 20;
  Reopen();
  const uint32_t layout = Define(MakeLayout("job", 100));
  const std::vector<int64_t> times(1, 1);
  const std::vector<double> values(100, 1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(spool_->AppendRows(layout, times, {}, values, {}).ok());
  }
  v1::SequenceRange ahead;
  ahead.set_first(11);
  ahead.set_last(90);
  spool_->SetDurableAhead({ahead});
  while (spool_->begin() <= 100) {
    ASSERT_TRUE(spool_->AppendRows(layout, times, {}, values, {}).ok());
  }
  // Those from 101 on that went in the same turn are lost as well.
  EXPECT_EQ(spool_->Stats().dropped_rows, 20 + spool_->begin() - 101);
}

TEST_F(SpoolTest, GivenUpEntryBecomesAGapInItsPlaceForGood) {
  const uint32_t layout = Define(MakeLayout("job"));
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(AppendRow(layout, i).ok());
  ASSERT_TRUE(spool_->Drop(2, 1, "poison").ok());
  Reopen();
  EXPECT_THAT(FirstValues(), ElementsAre(1, 3));
  EXPECT_EQ(spool_->end(), 4u) << "nothing was spooled for it";
  const auto entries = ReadAll();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].sequence, 2u);
  const v1::Gap& gap = entries[1].message.gap();
  EXPECT_EQ(gap.sequence(), 2u);
  EXPECT_EQ(gap.lost().first(), 2u);
  EXPECT_EQ(gap.lost().last(), 2u);
  EXPECT_EQ(gap.rows(), 1u);
  EXPECT_EQ(gap.reason(), "poison");
}

TEST_F(SpoolTest, GapThatIsGivenUpTooIsLeftOutAndToldAtTheEnd) {
  const uint32_t layout = Define(MakeLayout("job"));
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(AppendRow(layout, i).ok());
  ASSERT_TRUE(spool_->Drop(2, 1, "poison").ok());
  ASSERT_TRUE(spool_->Drop(2, 0, "the Gap is refused").ok());
  ASSERT_TRUE(spool_->Drop(2, 0, "again").ok());
  EXPECT_EQ(spool_->Stats().dropped_entries, 1u);
  EXPECT_EQ(spool_->Stats().dropped_rows, 1u);
  Reopen();
  const auto entries = ReadAll();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].sequence, 3u);
  const v1::Gap& gap = entries[2].message.gap();
  EXPECT_EQ(gap.sequence(), 4u);
  EXPECT_EQ(gap.lost().first(), 2u);
  EXPECT_EQ(gap.lost().last(), 2u);
  EXPECT_EQ(gap.rows(), 1u);
  EXPECT_EQ(gap.reason(), "poison");
}

TEST_F(SpoolTest, ReasonOfAGapIsWhatEveryCollectorTakes) {
  ASSERT_TRUE(AppendRow(Define(MakeLayout("job")), 1).ok());
  ASSERT_TRUE(spool_->Drop(1, 1, "\xff\n" + std::string(5000, 'x')).ok());
  const std::string reason = ReadAll()[0].message.gap().reason();
  EXPECT_EQ(reason.substr(0, 3), "??x");
  EXPECT_LE(reason.size(), 1024u);
}

TEST_F(SpoolTest, DamagedEntryIsGivenUpAndTheOthersAreRead) {
  const uint32_t layout = Define(MakeLayout("job"));
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(AppendRow(layout, i).ok());
  Damage(2);
  EXPECT_THAT(FirstValues(), ElementsAre(1, 3));
  const auto entries = ReadAll();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].message.gap().lost().first(), 2u);
  EXPECT_EQ(spool_->Stats().dropped_entries, 1u);
}

TEST_F(SpoolTest, SaysOnceAMinuteWhatItGaveUp) {
  const uint32_t layout = Define(MakeLayout("job"));
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(AppendRow(layout, i).ok());
  for (uint64_t sequence : {1, 2, 3}) ASSERT_TRUE(spool_->Drop(sequence, 10, "denied").ok());
  now_ += absl::Seconds(60);
  ASSERT_TRUE(spool_->Drop(4, 10, "denied").ok());
  EXPECT_THAT(log_, ElementsAre("gave up 1 spooled messages with 10 rows, the last of them message "
                                "1: denied",
                                "gave up 3 spooled messages with 30 rows, the last of them message "
                                "4: denied"));
}

TEST_F(SpoolTest, ListenerHearsEveryAppend) {
  int heard = 0;
  spool_->SetListener([&heard] { ++heard; });
  const uint32_t layout = Define(MakeLayout("job"));
  ASSERT_TRUE(AppendRow(layout, 1).ok());
  ASSERT_TRUE(spool_->Drop(1, 1, "reason").ok());
  EXPECT_EQ(heard, 2);
  spool_->SetListener(nullptr);
  EXPECT_TRUE(AppendRow(layout, 1).ok());
  EXPECT_EQ(heard, 2);
}

TEST(SpoolDirectoryTest, DamagedDirectoryIsMovedAsideAndANewGenerationBegins) {
  namespace fs = std::filesystem;
  const std::string root = ::testing::TempDir() + "/spool_directory_test";
  fs::remove_all(root);
  uint64_t generation = 0;
  for (int round = 0; round < 2; ++round) {
    std::string log;
    const SpoolOptions options = {
        .path = root + "/spool",
        .now = [round] { return absl::FromUnixSeconds(1'700'000'000 + round); },
        .log = [&log](LogLevel, absl::string_view line) { absl::StrAppend(&log, line, "\n"); }};
    const auto spool = Spool::Open(options);
    ASSERT_TRUE(spool.ok()) << spool.status();
    EXPECT_NE((*spool)->generation(), generation);
    EXPECT_EQ((*spool)->end(), 1u);
    EXPECT_EQ(log.find("lost") != std::string::npos, round == 1) << log;
    generation = (*spool)->generation();
    for (const auto& file : fs::directory_iterator(root + "/spool")) {
      if (file.path().filename().string().starts_with("MANIFEST")) fs::resize_file(file, 10);
    }
  }
  int aside = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().filename().string().starts_with("spool.damaged-")) ++aside;
  }
  EXPECT_EQ(aside, 1);
  fs::remove_all(root);
}

}  // namespace
}  // namespace tacho::agent

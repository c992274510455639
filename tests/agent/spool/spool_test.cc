// The spool on a file system in memory that can be made to refuse, and on the real one.
#include "agent/spool/spool.h"

#include <bit>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/spool/spool_test_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST_F(SpoolTest, NotesOfLayoutsThatADiskWouldNotRemoveAreHarmless) {
  ASSERT_TRUE(AppendRow(Define(MakeLayout("job")), 1).ok());
  const std::string content = MakeLayout("job").SerializeAsString();
  Put(0, "note/layout/00000000", content);
  Put(0, "note/layout/00000007", content);
  ASSERT_TRUE(spool_->Trim(2).ok());
  EXPECT_FALSE(spool_->FindLayout(7).ok());
  const uint32_t layout = Define(MakeLayout("job"));
  EXPECT_EQ(layout, 8u);
  EXPECT_TRUE(AppendRow(layout, 2).ok());
  EXPECT_EQ(spool_->FindLayout(layout)->source().job(), "job");
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
    EXPECT_LE(entry.message.ByteSizeLong(), 56u << 10);
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
  EXPECT_EQ(spool_->Stats().dropped_entries(), 1u);
  EXPECT_EQ(spool_->Stats().dropped_rows(), 1u);
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
  EXPECT_EQ(spool_->Stats().dropped_entries(), 1u);
}

TEST_F(SpoolTest, SaysOnceAMinuteWhatItGaveUp) {
  const uint32_t layout = Define(MakeLayout("job"));
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(AppendRow(layout, i).ok());
  for (uint64_t sequence : {1, 2, 3}) ASSERT_TRUE(spool_->Drop(sequence, 10, "denied").ok());
  now_ += absl::Seconds(60);
  ASSERT_TRUE(spool_->Drop(4, 10, "denied").ok());
  EXPECT_THAT(log_, ElementsAre(HasSubstr("msg=\"gave up 1 spooled messages with 10 rows, the last "
                                          "of them message 1: denied\"\n"),
                                HasSubstr("msg=\"gave up 3 spooled messages with 30 rows, the last "
                                          "of them message 4: denied\"\n")));
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
    std::vector<std::string> lines;
    const SpoolOptions options = {
        .path = root + "/spool",
        .now = [round] { return absl::FromUnixSeconds(1'700'000'000 + round); },
        .log = testing::LogTo(&lines)};
    const auto spool = Spool::Open(options);
    ASSERT_TRUE(spool.ok()) << spool.status();
    EXPECT_NE((*spool)->generation(), generation);
    EXPECT_EQ((*spool)->end(), 1u);
    const std::string log = absl::StrJoin(lines, "");
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

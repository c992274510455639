// What a spool drops past its bounds of bytes and age, and how it says so.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/spool/spool_test_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
  // Each row is either kept or named by a gap, never both.
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
  EXPECT_EQ(rows_lost, spool_->Stats().dropped_rows());
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
  EXPECT_EQ(spool_->Stats().dropped_rows(), 20 + spool_->begin() - 101);
}

TEST_F(SpoolTest, WhatIsTooOldIsDroppedAndToldOverARestartToo) {
  max_age_ = absl::Hours(64);
  Reopen();
  const uint32_t layout = Define(MakeLayout("job"));
  for (int hour = 0; hour < 30; ++hour, now_ += absl::Hours(1)) {
    ASSERT_TRUE(AppendRow(layout, hour).ok());
  }
  // The agent is off for two days. Those of the first 13 hours, spooled 64 hours ago and earlier,
  // are too old then.
  now_ += absl::Hours(47);
  Reopen();
  const auto entries = ReadAll();
  EXPECT_EQ(entries.front().message.batch().values(0), 13);
  EXPECT_EQ(entries.size(), 18u);
  const v1::Gap& gap = entries.back().message.gap();
  EXPECT_EQ(gap.rows(), 13u);
  EXPECT_EQ(gap.lost().first(), 1u);
  EXPECT_EQ(gap.lost().last(), 13u);
  EXPECT_THAT(gap.reason(), HasSubstr("spool.max_age"));
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kAge).rows, 13u);
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kBytes).rows, 0u);
  EXPECT_THAT(log_, ElementsAre(::testing::AllOf(HasSubstr("dropped the oldest messages"),
                                                 HasSubstr("messages=13 rows=13"))));
}

// A long outage must not make the spool report its own Gaps again and again.
TEST_F(SpoolTest, GapsOfALongOutageBecomeOne) {
  max_age_ = absl::Hours(1);
  Reopen();
  const uint32_t layout = Define(MakeLayout("job"));
  for (int minute = 0; minute < 600; ++minute, now_ += absl::Minutes(1)) {
    ASSERT_TRUE(AppendRow(layout, minute).ok());
  }
  int gaps = 0;
  for (const auto& entry : ReadAll()) gaps += entry.message.has_gap() ? 1 : 0;
  EXPECT_EQ(gaps, 1);
  uint64_t end = 0;
  for (int restart = 0; restart < 8; ++restart) {
    now_ += absl::Hours(2);
    Reopen();
    if (restart == 1) end = spool_->end();
  }
  EXPECT_EQ(spool_->end(), end);
  uint64_t rows = 0;
  const auto entries = ReadAll();
  EXPECT_LE(entries.size(), 2u);
  for (const auto& entry : entries) rows += entry.message.gap().rows();
  EXPECT_EQ(rows, 600u);
}

// What may have been sent must stay as it was.
TEST_F(SpoolTest, GapThatWasReadIsNotMadeLonger) {
  max_age_ = absl::Hours(1);
  Reopen();
  const uint32_t layout = Define(MakeLayout("job"));
  const auto append = [&](int minutes) {
    for (int minute = 0; minute < minutes; ++minute, now_ += absl::Minutes(1)) {
      ASSERT_TRUE(AppendRow(layout, minute).ok());
    }
  };
  append(70);
  const auto before = ReadAll();
  append(10);
  std::map<uint64_t, std::string> gaps;
  for (const auto& entry : ReadAll()) {
    if (entry.message.has_gap()) gaps[entry.sequence] = entry.message.SerializeAsString();
  }
  EXPECT_EQ(gaps.size(), 2u);
  for (const auto& entry : before) {
    if (!entry.message.has_gap()) continue;
    EXPECT_EQ(gaps[entry.sequence], entry.message.SerializeAsString());
  }
}

// Gaps of earlier runs, of this one, and rows: whatever is dropped together, no row is forgotten.
TEST_F(SpoolTest, RowsAreCountedToTheLastOverManyRestartsOfAnOutage) {
  max_bytes_ = 20'000;
  uint64_t appended = 0;
  for (int restart = 0; restart < 12; ++restart) {
    Reopen();
    const uint32_t layout = Define(MakeLayout("job"));
    for (int i = 0; i < 100 + 300 * (restart % 4); ++i, ++appended) {
      ASSERT_TRUE(AppendRow(layout, i).ok());
    }
    uint64_t rows = 0;
    for (const auto& entry : ReadAll())
      rows += entry.message.has_batch() ? 1 : entry.message.gap().rows();
    EXPECT_EQ(rows, appended) << restart;
    if (restart % 2 == 0) continue;
    Reopen();
  }
}

// One write drops the entries and adds the Gap that reports them: whatever the disk refuses, a row
// is kept or reported as lost, never both.
TEST_F(SpoolTest, NoRowIsBothKeptAndLostWhereverTheDiskRefuses) {
  max_bytes_ = 100'000;
  Reopen();
  uint32_t layout = Define(MakeLayout("job", 100));
  const std::vector<int64_t> times(1, 1);
  uint64_t appended = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == 0) env_.RefuseAfter(i % 4);
    const std::vector<double> values(100, i);
    if (spool_->AppendRows(layout, times, {}, values, {"k", "v"}).ok()) ++appended;
    env_.RefuseWrites(false);
    if (i % 100 == 50) {
      Reopen();
      layout = Define(MakeLayout("job", 100));
    }
  }
  EXPECT_GT(env_.failures(), 50);
  const auto [kept, lost] = CountBatches();
  EXPECT_EQ(kept + lost, appended);
}

// The disk says that it refused and has written all the same.
TEST_F(SpoolTest, NoRowIsLostUncountedWhereARefusedWriteWasMade) {
  max_bytes_ = 100'000;
  Reopen();
  const uint32_t layout = Define(MakeLayout("job", 100));
  const std::vector<int64_t> times(1, 1);
  uint64_t appended = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == 0) {
      env_.Set({.match = ".log",
                .append = rocksdb::Status::IOError("injected"),
                .spare = i % 4,
                .late = true});
    }
    const std::vector<double> values(100, i);
    if (spool_->AppendRows(layout, times, {}, values, {"k", "v"}).ok()) ++appended;
    env_.Clear();
  }
  EXPECT_GT(env_.failures(), 50);
  const auto [kept, lost] = CountBatches();
  EXPECT_EQ(kept + lost, appended);
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kBytes).rows, lost);
}

TEST_F(SpoolTest, RowsThatTheDiskRefusedAreToldWhenItTakesWritesAgain) {
  const uint32_t layout = Define(MakeLayout("job"));
  ASSERT_TRUE(AppendRow(layout, 1).ok());
  env_.RefuseWrites(true);
  EXPECT_FALSE(AppendRow(layout, 2).ok());
  EXPECT_FALSE(AppendRow(layout, 3).ok());
  EXPECT_FALSE(AppendRow(layout, 4, {"rings/x", "1"}).ok());  // Is read again.
  env_.RefuseWrites(false);
  ASSERT_TRUE(AppendRow(layout, 5).ok());
  const auto entries = ReadAll();
  ASSERT_THAT(entries, SizeIs(3));
  const v1::Gap& gap = entries[2].message.gap();
  EXPECT_EQ(gap.rows(), 2u);
  EXPECT_EQ(gap.lost().first(), 3u) << "in no other message's place";
  EXPECT_EQ(gap.lost().last(), 3u);
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kDisk).rows, 2u);
  EXPECT_EQ(spool_->Stats().dropped_rows(), 2u);
}

TEST_F(SpoolTest, PatientSourcesWaitWhileTheSpoolIsHalfFull) {
  max_bytes_ = 100'000;
  Reopen();
  const uint32_t layout = Define(MakeLayout("job"));
  int patient = 0;
  while (patient < 10'000 && AppendRow(layout, 1, {"files/a", absl::StrCat(patient)}).ok()) {
    ++patient;
  }
  EXPECT_NEAR(static_cast<double>(spool_->Stats().bytes), 50'000, 100);
  EXPECT_EQ(spool_->ReadCheckpoint("files/a"), absl::StrCat(patient - 1));
  EXPECT_TRUE(AppendRow(layout, 1).ok());
  EXPECT_TRUE(AppendRow(layout, 1, {"rings/a", "1"}).ok());
  EXPECT_TRUE(spool_->WriteCheckpoint({"files/b", ""}).ok());
  ASSERT_TRUE(spool_->Trim(100).ok());
  EXPECT_TRUE(AppendRow(layout, 1, {"files/a", "on"}).ok());
}

}  // namespace
}  // namespace tacho::agent

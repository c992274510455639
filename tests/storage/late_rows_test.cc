// Jobs with many series, whose rows in the journal wait until somebody needs them.
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;

class LateRowsTest : public StoreFixture {
 protected:
  LateRowsTest() {
    options_.series_at_open = 3;
    Reopen();
  }

  // One row of the job "big" or "small", in which every series has the value.
  absl::Status AppendOne(const std::string& job, double value) {
    const LayoutPtr layout = Register(OfJob(job));
    ++step_;
    return Append(layout, {absl::ToUnixNanos(now_) + step_}, {step_},
                  std::vector<double>(layout->series.size(), value), {job, 1, ++sequences_[job]});
  }
  static LayoutDefinition OfJob(const std::string& job) {
    return job == "big" ? Definition(job, {"a", "b", "c", "d"}) : Definition(job, {"a", "b"});
  }
  // As after a kill: nothing is sealed.
  void Crash() {
    const std::string copy = "/copy" + std::to_string(++copies_);
    ASSERT_TRUE(store_->Checkpoint(copy).ok());
    store_.reset();
    options_.path = copy;
    Reopen();
  }
  std::vector<double> Stored(const std::string& job) { return ReadAll(Find(job, "a")).values; }
  uint64_t InMemory() { return store_->Stats().series_in_memory; }

  int64_t step_ = 0;
  int copies_ = 0;
  std::map<std::string, uint64_t> sequences_;
};

TEST_F(LateRowsTest, TheStoreIsReadyBeforeALargeJobIsRead) {
  for (const double value : {1, 2}) ASSERT_TRUE(AppendOne("big", value).ok());
  ASSERT_TRUE(AppendOne("small", 3).ok());
  Crash();
  EXPECT_EQ(InMemory(), 2u) << "those of the small one";
  EXPECT_THAT(Stored("small"), ElementsAre(3));
  EXPECT_EQ(InMemory(), 2u);
  EXPECT_THAT(Stored("big"), ElementsAre(1, 2));
  EXPECT_EQ(InMemory(), 6u);
  EXPECT_EQ(store_->DurableSequences("big", 1).watermark(), 2u);
}

TEST_F(LateRowsTest, EveryWayToReadALargeJobFindsItsRows) {
  ASSERT_TRUE(AppendOne("big", 1).ok());
  const auto rows = [](Extent extent) { return extent.first_time_ns <= extent.last_time_ns; };
  Crash();
  EXPECT_TRUE(rows(store_->FindJob("big")->summary.extent));
  Crash();
  const auto attempts = store_->Attempts("big");
  ASSERT_TRUE(attempts.ok() && attempts->size() == 1);
  Crash();
  store_->OpenJobView("big");
  EXPECT_EQ(store_->Stats().open_rows, 1u);
}

TEST_F(LateRowsTest, RowsThatComeBeforeAnybodyReadsStandBehindTheLateOnes) {
  for (const double value : {1, 2}) ASSERT_TRUE(AppendOne("big", value).ok());
  Crash();
  ASSERT_TRUE(AppendOne("big", 3).ok());
  EXPECT_THAT(Stored("big"), ElementsAre(1, 2, 3));
  // The same row again: the later value counts, also if only the earlier one was late.
  Crash();
  const LayoutPtr layout = Register(OfJob("big"));
  ASSERT_TRUE(
      Append(layout, {absl::ToUnixNanos(now_) + step_}, {step_}, {4, 4, 4, 4}, {"big", 1, 9}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_THAT(Stored("big"), ElementsAre(1, 2, 4));
}

TEST_F(LateRowsTest, TheJournalIsNotTrimmedPastLateRows) {
  ASSERT_TRUE(AppendOne("small", 2).ok());
  ASSERT_TRUE(AppendOne("big", 1).ok());
  ASSERT_TRUE(AppendOne("small", 3).ok());
  Crash();
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(store_->Stats().journal_entries, 2u) << "from the large job's on";
  Crash();
  EXPECT_THAT(Stored("small"), ElementsAre(2, 3));
  EXPECT_THAT(Stored("big"), ElementsAre(1));
  ASSERT_TRUE(AppendOne("small", 4).ok());
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(store_->Stats().journal_entries, 0u);
  Crash();
  EXPECT_THAT(Stored("big"), ElementsAre(1));
}

TEST_F(LateRowsTest, TheBackgroundBringsLateRows) {
  ASSERT_TRUE(AppendOne("big", 1).ok());
  options_.background = true;
  Crash();
  for (int i = 0; i < 3000 && InMemory() < 4; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(InMemory(), 4u);
}

TEST_F(LateRowsTest, AJobWithLateRowsDoesNotExpire) {
  ASSERT_TRUE(AppendOne("big", 1).ok());
  ASSERT_TRUE(store_->Seal().ok());
  now_ += absl::Hours(24 * 10);
  ASSERT_TRUE(AppendOne("big", 2).ok());
  options_.retention = absl::Hours(24 * 5);
  Crash();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(Stored("big"), ElementsAre(2));
}

}  // namespace
}  // namespace tacho::storage

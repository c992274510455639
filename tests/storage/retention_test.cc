// Dropping days by age and for the sake of bytes.
#include <random>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "storage/codec/keys.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RetentionTest : public StoreFixture {
 protected:
  RetentionTest() {
    options_.log = [this](absl::string_view line) { log_.emplace_back(line); };
    Reopen();
  }

  int64_t Today() const { return DayOf(absl::ToUnixNanos(now_)); }

  // About as many bytes of noise each time, in tables.
  void FillDay(int64_t day, const std::string& job) {
    std::vector<int64_t> times;
    std::vector<double> values;
    for (int i = 0; i < 2000; ++i) {
      times.push_back(day * kDayNs + i * 1'000'000);
      values.push_back(std::bit_cast<double>(random_() >> 2));
    }
    const std::vector<int64_t> steps(times.size(), 0);
    ASSERT_TRUE(Append(Register(Definition(job, {"loss"})), times, steps, values).ok());
    Reopen();
  }
  std::vector<std::string> JobNames() {
    std::vector<std::string> names;
    for (const JobSummary& job : store_->Jobs()) names.push_back(job.name);
    return names;
  }

  std::mt19937_64 random_{1};
  std::vector<std::string> log_;
};

TEST_F(RetentionTest, TheOldestDaysGoUntilTheRestFitsAndWithThemTheirJobs) {
  // Written in no order, as a backfill may.
  for (const int64_t age : {3, 0, 4, 1, 2}) FillDay(Today() - age, "job-" + std::to_string(age));
  const uint64_t all = store_->Stats().disk_bytes;
  options_.retention_bytes = all * 7 / 10;
  Reopen();
  const SeriesPtr oldest = Find("job-4", "loss");
  const auto reader = store_->Read(oldest, {});
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(JobNames(), ElementsAre("job-0", "job-1", "job-2"));
  EXPECT_EQ(store_->Stats().partitions_dropped, 2u);
  EXPECT_EQ(store_->Stats().over_retention_bytes, 0u);
  EXPECT_THAT(ReadAll(Find("job-2", "loss")).values, SizeIs(2000));
  SampleBlock block;
  size_t read = 0;
  while (*NextBlock(reader, &block)) read += block.size();
  EXPECT_EQ(read, 2000u) << "a reader keeps what it sees";
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_EQ(store_->Stats().partitions_dropped, 2u) << "it fits now";
}

TEST_F(RetentionTest, OldEventsOfEveryJobGoAndYoungOnesStay) {
  options_.retention = absl::Hours(24 * 10);
  Reopen();
  const auto record = [this](const std::string& job, int64_t age_days) {
    Event event;
    event.source.job = job;
    event.time_ns = (Today() - age_days) * kDayNs;
    event.kind = std::to_string(age_days);
    ASSERT_TRUE(
        Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); }).ok());
  };
  const auto kinds = [this](const std::string& job) {
    std::vector<std::string> found;
    const auto events = store_->Events(job, INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    for (const Event& event : *events) found.push_back(event.kind);
    return found;
  };
  for (const int64_t age : {30, 20, 5}) record("both", age);
  record("young", 1);
  record("old", 40);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(kinds("both"), ElementsAre("5"));
  EXPECT_THAT(kinds("young"), ElementsAre("1"));
  EXPECT_THAT(kinds("old"), IsEmpty());
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(kinds("both"), ElementsAre("5"));
}

// What the background does, which nobody asked for.
class RetentionRoundTest : public RetentionTest {
 protected:
  RetentionRoundTest() {
    options_.retention = absl::Hours(24 * 10);
    options_.monotonic = [this] { return uptime_; };
    options_.clock_trusted = [this] { return trusted_; };
    Reopen();
  }

  void RowAt(absl::Time time, const std::string& job = "job") {
    const LayoutPtr layout = Register(Definition(job, {"loss"}));
    ASSERT_TRUE(
        Append(layout, {absl::ToUnixNanos(time)}, {1}, {1}, {"agent", 1, ++sequence_}).ok());
    ASSERT_TRUE(store_->Seal().ok());
  }
  size_t DaysAfterRound() {
    EXPECT_TRUE(store_->RetentionRound().ok());
    return store_->Stats().partitions;
  }

  absl::Time uptime_ = absl::UnixEpoch();
  bool trusted_ = true;
  uint64_t sequence_ = 0;
};

TEST_F(RetentionRoundTest, AClockFarAheadOfEveryRowDropsNothing) {
  RowAt(now_ - absl::Hours(24 * 5), "ended");
  RowAt(now_);
  uptime_ += absl::Hours(100);
  now_ += absl::Hours(24 * 100);
  EXPECT_EQ(DaysAfterRound(), 2u);
  EXPECT_THAT(JobNames(), ElementsAre("ended", "job"));
  EXPECT_EQ(store_->DurableSequences("agent", 1).watermark(), 2u);
}

TEST_F(RetentionRoundTest, WithRowsThatAreAheadTooOneDayGoesInAnHour) {
  for (int age = 0; age < 4; ++age) RowAt(now_ - absl::Hours(24 * age), std::to_string(age));
  now_ += absl::Hours(24 * 100);
  RowAt(now_, "ahead");
  EXPECT_EQ(DaysAfterRound(), 5u) << "not in the first hour";
  uptime_ += absl::Hours(1);
  EXPECT_EQ(DaysAfterRound(), 4u);
  EXPECT_THAT(JobNames(), ElementsAre("0", "1", "2", "ahead"));
  EXPECT_THAT(log_, Contains(HasSubstr("3 more days are too old")));
  EXPECT_EQ(DaysAfterRound(), 4u);
  uptime_ += absl::Minutes(59);
  EXPECT_EQ(DaysAfterRound(), 4u);
  uptime_ += absl::Minutes(1);
  EXPECT_EQ(DaysAfterRound(), 3u);
  uptime_ += absl::Hours(24);
  EXPECT_EQ(DaysAfterRound(), 2u) << "what was not used is not saved up";
}

TEST_F(RetentionRoundTest, ThePaceIsASetting) {
  options_.retention_days_per_hour = 0;
  Reopen();
  for (int age = 20; age < 24; ++age) RowAt(now_ - absl::Hours(24 * age));
  RowAt(now_);
  EXPECT_EQ(DaysAfterRound(), 1u);
}

TEST_F(RetentionRoundTest, NothingGoesByAgeWhileTheClockIsNotTrusted) {
  RowAt(now_ - absl::Hours(24 * 20));
  RowAt(now_);
  uptime_ += absl::Hours(1);
  trusted_ = false;
  EXPECT_EQ(DaysAfterRound(), 2u);
  trusted_ = true;
  EXPECT_EQ(DaysAfterRound(), 1u);
}

TEST_F(RetentionRoundTest, BytesNeverTakeTheDayThatIsWrittenThoughTheClockIsAhead) {
  for (const int64_t age : {1, 0}) FillDay(Today() - age, "job-" + std::to_string(age));
  options_.retention_bytes = 1000;
  Reopen();
  now_ += absl::Hours(24 * 100);
  EXPECT_EQ(DaysAfterRound(), 1u) << "bytes are not a matter of clocks: no hour passes";
  EXPECT_THAT(JobNames(), ElementsAre("job-0"));
}

TEST_F(RetentionTest, AgentsThatWereNotHeardOfForLongAreForgotten) {
  options_.retention = absl::Hours(24 * 90);
  Reopen();
  const auto append = [this](const std::string& agent) {
    const LayoutPtr layout = Register(Definition("job-" + agent, {"loss"}));
    EXPECT_TRUE(Append(layout, {absl::ToUnixNanos(now_)}, {1}, {1}, {agent, 1, 1}).ok());
  };
  const auto known = [this](const std::string& agent) {
    return store_->DurableSequences(agent, 1).watermark() == 1;
  };
  append("gone");
  append("asks");
  now_ += absl::Hours(24 * 60);
  append("sends");
  EXPECT_TRUE(known("asks")) << "which is what Hello does";
  now_ += absl::Hours(24 * 31);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_TRUE(known("asks"));
  EXPECT_TRUE(known("sends"));
  EXPECT_FALSE(known("gone"));
  Reopen();
  EXPECT_FALSE(known("gone")) << "on disk too";
  EXPECT_TRUE(known("sends"));
}

TEST_F(RetentionTest, AgentsAreRememberedForAMonthAtLeastAndForEverWithTheirRows) {
  for (const absl::Duration retention : {absl::Hours(24), absl::ZeroDuration()}) {
    options_.retention = retention;
    Reopen();
    const LayoutPtr layout = Register(Definition("job", {"loss"}));
    ASSERT_TRUE(Append(layout, {absl::ToUnixNanos(now_)}, {1}, {1}, {"agent", 1, 1}).ok());
    now_ += absl::Hours(24 * (retention == absl::ZeroDuration() ? 4000 : 29));
    ASSERT_TRUE(store_->EnforceRetention().ok());
    EXPECT_EQ(store_->DurableSequences("agent", 1).watermark(), 1u) << retention;
  }
}

TEST_F(RetentionTest, TheDayThatIsWrittenNowStaysWhateverItsSizeAndThatIsSaid) {
  for (const int64_t age : {1, 0}) FillDay(Today() - age, "job-" + std::to_string(age));
  options_.retention_bytes = 1000;
  Reopen();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(JobNames(), ElementsAre("job-0"));
  EXPECT_GT(store_->Stats().over_retention_bytes, 10'000u);
  EXPECT_THAT(log_, Contains(HasSubstr("MORE than the retention allows")));
  log_.clear();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(log_, IsEmpty()) << "said once";
  now_ += absl::Hours(24);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(JobNames(), IsEmpty()) << "it is another day's turn";
}

TEST_F(RetentionTest, WhicheverBoundIsCloserDecides) {
  for (int64_t age = 4; age >= 0; --age) FillDay(Today() - age, "job-" + std::to_string(age));
  options_.retention_bytes = uint64_t{1} << 40;
  options_.retention = absl::Hours(48);
  Reopen();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(JobNames(), ElementsAre("job-0", "job-1", "job-2"));
  options_.retention_bytes = 1;
  Reopen();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(JobNames(), ElementsAre("job-0"));
}

TEST_F(RetentionTest, ABackfillIntoADayThatWentMakesItAnewUntilTheNextRound) {
  for (const int64_t age : {1, 0}) FillDay(Today() - age, "job");
  options_.retention_bytes = 1000;
  Reopen();
  ASSERT_TRUE(store_->EnforceRetention().ok());
  FillDay(Today() - 1, "job");
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, SizeIs(4000));
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, SizeIs(2000));
}

TEST_F(RetentionTest, BytesWrittenAreCountedByWhatTheyAreFor) {
  FillDay(Today(), "job");
  ASSERT_TRUE(Append(Register(Definition("job", {"loss"})), {Today() * kDayNs}, {1}, {1}).ok());
  const StoreStats stats = store_->Stats();
  EXPECT_GT(stats.log_bytes_written, 0u);
  EXPECT_LT(stats.log_bytes_written, 1000u) << "since it was opened";
  EXPECT_EQ(stats.merge_bytes, 0u);
}

}  // namespace
}  // namespace tacho::storage

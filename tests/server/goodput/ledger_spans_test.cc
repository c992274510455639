// The ledger as it came about: spans that sum to the ledger, whatever comes.
#include "server/goodput/ledger_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/goodput/ledger.h"
#include "tests/server/goodput/ledger_jobs.h"

namespace tacho::server::goodput {
namespace {

using testing::ElementsAre;

constexpr size_t kMany = 1 << 20;

// "wasted 70-110 @0 51..99": seconds, attempt, steps.
std::vector<std::string> Texts(const std::vector<BucketSpan>& spans) {
  std::vector<std::string> texts;
  for (const BucketSpan& span : spans) {
    std::string text = absl::StrCat(std::string(GoodputBucketName(span.bucket)), " ",
                                    static_cast<double>(span.begin_ns) / kSecond, "-",
                                    static_cast<double>(span.end_ns) / kSecond, " @", span.attempt);
    if (span.steps.has_value()) {
      absl::StrAppend(&text, " ", span.steps->first, "..", span.steps->last);
    }
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> SpansOfJob(const LedgerJob& job, size_t most = kMany) {
  return Texts(job.Make({.max_spans = most}).bucket_spans());
}

// "" if the spans divide the time of the ledger without gaps, and neighbours differ.
std::string WrongIn(const std::vector<BucketSpan>& spans, const Ledger& total) {
  int64_t at_ns = total.begin_ns;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].begin_ns != at_ns) return absl::StrCat("span ", i, " begins elsewhere");
    if (spans[i].ns() <= 0) return absl::StrCat("span ", i, " has no time");
    at_ns = spans[i].end_ns;
    if (i == 0) continue;
    const bool differs =
        spans[i].bucket != spans[i - 1].bucket || spans[i].attempt != spans[i - 1].attempt;
    if (!differs) return absl::StrCat("span ", i, " is as the one before");
  }
  return at_ns == total.end_ns ? "" : "the last span ends elsewhere";
}

BucketAmounts SumsOf(const std::vector<BucketSpan>& spans) {
  BucketAmounts sums = {};
  for (const BucketSpan& span : spans) sums[static_cast<size_t>(span.bucket)] += span.ns();
  return sums;
}

TEST(LedgerSpansTest, StepsFollowWhatCameBefore) {
  LedgerJob job = Stepping(60, 11);
  job.attempts[0].phases = {{phases::Phase::kInit, 5 * kSecond, 58 * kSecond},
                            {phases::Phase::kRestore, 10 * kSecond, 20 * kSecond},
                            {phases::Phase::kCompile, 15 * kSecond, 50 * kSecond}};
  EXPECT_THAT(SpansOfJob(job),
              ElementsAre("initializing 0-10 @0", "restoring 10-20 @0", "compiling 20-50 @0",
                          "initializing 50-60 @0", "productive_step 60-70 @0 1..10"));
  EXPECT_TRUE(job.Make().bucket_spans().empty()) << "none are wanted";
}

TEST(LedgerSpansTest, WastedTimeIsASpanOfItsOwnAndSoIsTheTimeDown) {
  LedgerJob job = Stepping(0, 101);
  job.attempts.push_back({.attempt = 3, .first_ns = 150 * kSecond, .last_ns = 200 * kSecond});
  job.rows.emplace_back();
  for (int64_t i = 0; i <= 40; ++i) {
    job.rows[1].push_back({.time_ns = (160 + i) * kSecond, .step = 60 + i});
  }
  job.now_ns = 200 * kSecond;
  EXPECT_THAT(
      SpansOfJob(job),
      ElementsAre("productive_step 0-59 @0 1..59", "wasted 59-100 @0 60..100", "down 100-150 @0",
                  "initializing 150-160 @3", "productive_step 160-200 @3 61..100"));
}

TEST(LedgerSpansTest, ARewindWithinAnAttemptWastesAndGoesOn) {
  LedgerJob job = Stepping(0, 6);
  for (int64_t i = 0; i < 4; ++i) {
    job.rows[0].push_back({.time_ns = (6 + i) * kSecond, .step = 3 + i});
  }
  job.attempts[0].last_ns = job.now_ns = 9 * kSecond;
  EXPECT_THAT(SpansOfJob(job), ElementsAre("productive_step 0-2 @0 1..2", "wasted 2-5 @0 3..5",
                                           "productive_step 5-9 @0 3..6"));
}

TEST(LedgerSpansTest, PausesOfAStepComeBeforeItAndAStallAfterIt) {
  LedgerJob job = Stepping(0, 11);
  for (StepRow& row : job.rows[0]) {
    if (row.step == 10) row.time_ns += 100 * kSecond;
  }
  job.rows[0][10].checkpoint_seconds = 5;
  job.rows[0][10].data_wait_seconds = 2;
  job.attempts[0].last_ns = job.now_ns = 110 * kSecond;
  job.attempts[0].phases = {{phases::Phase::kEval, 20 * kSecond, 30 * kSecond}};
  EXPECT_THAT(SpansOfJob(job),
              ElementsAre("productive_step 0-9 @0 1..9", "checkpoint 9-14 @0", "data_wait 14-16 @0",
                          "productive_step 16-17 @0 10..10", "stalled 17-20 @0",
                          "evaluation 20-30 @0", "stalled 30-110 @0"));
}

TEST(LedgerSpansTest, ASilentJobEndsWithTimeDown) {
  LedgerJob job = Stepping(0, 11);
  job.attempts[0].last_ns = 13 * kSecond;
  job.now_ns = 613 * kSecond;
  EXPECT_THAT(SpansOfJob(job),
              ElementsAre("productive_step 0-10 @0 1..10", "other 10-13 @0", "down 13-613 @0"));
}

TEST(LedgerSpansTest, TheShortestAreJoinedWithTheLongerNeighbour) {
  const auto span = [](GoodputBucket bucket, int64_t begin, int64_t end,
                       std::optional<StepBounds> steps = std::nullopt) {
    return BucketSpan{bucket, 0, begin * kSecond, end * kSecond, steps};
  };
  using enum GoodputBucket;
  const std::vector<BucketSpan> spans = {
      span(kInitializing, 0, 10), span(kProductiveStep, 10, 30, StepBounds{1, 20}),
      span(kDataWait, 30, 31),    span(kProductiveStep, 31, 60, StepBounds{21, 40}),
      span(kCheckpoint, 60, 63),  span(kStalled, 63, 99)};
  const auto join = [&](size_t most, uint64_t expected) {
    std::vector<BucketSpan> left = spans;
    EXPECT_EQ(JoinShortest(most, &left), expected);
    return Texts(left);
  };
  EXPECT_EQ(join(6, 0), Texts(spans));
  // The neighbours of the shortest become one.
  EXPECT_THAT(join(5, 1), ElementsAre("initializing 0-10 @0", "productive_step 10-60 @0 1..40",
                                      "checkpoint 60-63 @0", "stalled 63-99 @0"));
  EXPECT_THAT(join(3, 2), ElementsAre("initializing 0-10 @0", "productive_step 10-63 @0 1..40",
                                      "stalled 63-99 @0"));
  EXPECT_THAT(join(1, 4), ElementsAre("productive_step 0-99 @0 1..40"));
}

TEST(LedgerSpansTest, TheySumToTheLedgerWhateverComes) {
  uint64_t joined = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const LedgerJob job = RandomLedgerJob(seed).Make();
    const LedgerMaker all = job.Make({.max_spans = kMany});
    ASSERT_EQ(WrongIn(all.bucket_spans(), all.total()), "") << "seed " << seed;
    ASSERT_EQ(SumsOf(all.bucket_spans()), all.total().ns) << "seed " << seed;
    ASSERT_EQ(all.bucket_spans_joined(), 0) << "seed " << seed;
    const LedgerMaker few = job.Make({.max_spans = 7});
    ASSERT_LE(few.bucket_spans().size(), 7) << "seed " << seed;
    ASSERT_EQ(WrongIn(few.bucket_spans(), few.total()), "") << "seed " << seed;
    ASSERT_EQ(few.bucket_spans_joined() > 0, all.bucket_spans().size() > 7) << "seed " << seed;
    ASSERT_EQ(few.total().ns, all.total().ns) << "seed " << seed;
    joined += few.bucket_spans_joined();
  }
  EXPECT_GT(joined, 3'000) << "the jobs have many spans";
}

// Waits in each step, as a long job has them, and two real stalls.
TEST(LedgerSpansTest, MoreThanAreHeldAreJoinedAndLongOnesStay) {
  LedgerJob job = Stepping(0, 150'000);
  for (StepRow& row : job.rows[0]) {
    row.data_wait_seconds = 0.1;
    if (row.step > 1000) row.time_ns += 500 * kSecond;
    if (row.step > 140'000) row.time_ns += 300 * kSecond;
  }
  job.attempts[0].last_ns = job.now_ns = job.rows[0].back().time_ns;
  const LedgerMaker maker = job.Make({.max_spans = 5});
  EXPECT_THAT(Texts(maker.bucket_spans()),
              ElementsAre("productive_step 0-1001.1 @0 1..1001", "stalled 1001.1-1501.1 @0",
                          testing::StartsWith("productive_step 1501.1-140501"),
                          testing::StartsWith("stalled 140501-140801"),
                          testing::StartsWith("productive_step 140801-150799")));
  EXPECT_GT(maker.bucket_spans_joined(), 140'000);
}

}  // namespace
}  // namespace tacho::server::goodput

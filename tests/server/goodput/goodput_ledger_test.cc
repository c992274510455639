#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "server/goodput/ledger.h"
#include "tests/server/goodput/ledger_jobs.h"

namespace tacho::server::goodput {
namespace {

int64_t Seconds(const Ledger& ledger, GoodputBucket bucket) { return ledger[bucket] / kSecond; }

int64_t Sum(const Ledger& ledger) {
  return std::accumulate(ledger.ns.begin(), ledger.ns.end(), int64_t{0});
}

TEST(LedgerTest, StepsAreProductiveAndWhatComesBeforeIsInitializing) {
  const LedgerMaker maker = Stepping(30, 101).Make();
  const Ledger& total = maker.total();
  EXPECT_EQ(Seconds(total, GoodputBucket::kInitializing), 30);
  EXPECT_EQ(Seconds(total, GoodputBucket::kProductiveStep), 100);
  EXPECT_EQ(total.wall_ns(), 130 * kSecond);
  EXPECT_EQ(Sum(total), total.wall_ns());
  EXPECT_EQ(total.productive_steps, 100u);
}

TEST(LedgerTest, StepsBelowASecondCount) {
  LedgerJob job;
  job.attempts = {{.first_ns = 0, .last_ns = kSecond}};
  job.rows.resize(1);
  for (int64_t i = 0; i <= 100; ++i)
    job.rows[0].push_back({.time_ns = i * kSecond / 100, .step = i});
  job.now_ns = kSecond;
  EXPECT_EQ(job.Make().total()[GoodputBucket::kProductiveStep], kSecond);
}

TEST(LedgerTest, EventsOfPhasesCoverTheirIntervalsAndTheInnermostWins) {
  LedgerJob job = Stepping(60, 11);
  job.attempts[0].phases = {{phases::Phase::kInit, 5 * kSecond, 58 * kSecond},
                            {phases::Phase::kRestore, 10 * kSecond, 20 * kSecond},
                            {phases::Phase::kCompile, 15 * kSecond, 50 * kSecond}};
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kRestoring), 10);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kCompiling), 30);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kInitializing), 20);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 10);
}

TEST(LedgerTest, ACheckpointThatNoStepPassesBlocksAndOneThatStepsPassDoesNot) {
  LedgerJob job = Stepping(0, 11);
  for (StepRow& row : job.rows[0]) {
    if (row.step >= 5) row.time_ns += 20 * kSecond;
  }
  job.attempts[0].last_ns = job.now_ns = 30 * kSecond;
  job.attempts[0].phases = {{phases::Phase::kCheckpoint, kSecond + kSecond / 2,
                             3 * kSecond + kSecond / 2},  // Beside steps.
                            {phases::Phase::kCheckpoint, 4 * kSecond, 24 * kSecond}};
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kCheckpoint), 20);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 10);
}

// Steps of a second until 20 s, then a checkpoint of six minutes. A row of a step that was done
// before comes a little after the event.
LedgerJob WithARowInACheckpoint() {
  LedgerJob job = Stepping(0, 21);
  job.attempts[0].phases = {
      {phases::Phase::kCheckpoint, 20 * kSecond + kSecond / 10, 380 * kSecond}};
  job.rows[0].push_back({.time_ns = 20 * kSecond + kSecond * 7 / 10, .step = 21});
  for (int64_t i = 0; i < 10; ++i) {
    job.rows[0].push_back({.time_ns = (381 + i) * kSecond, .step = 22 + i});
  }
  job.attempts[0].last_ns = job.now_ns = 390 * kSecond;
  return job;
}

TEST(LedgerTest, ARowThatComesAfterItsCheckpointBeganMakesItNoStall) {
  const LedgerMaker maker = WithARowInACheckpoint().Make({.max_spans = 100});
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kStalled), 0);
  EXPECT_NEAR(static_cast<double>(Seconds(maker.total(), GoodputBucket::kCheckpoint)), 359, 1);
  EXPECT_EQ(Sum(maker.total()), 390 * kSecond);
  int64_t laid = 0;
  for (const BucketSpan& span : maker.bucket_spans()) laid += span.ns();
  EXPECT_EQ(laid, 390 * kSecond);
}

TEST(LedgerTest, TheSameWhileTheCheckpointGoesOn) {
  LedgerJob job = WithARowInACheckpoint();
  job.rows[0].resize(22);
  job.attempts[0].phases[0].end_ns = phases::kStillOpen;
  job.attempts[0].last_ns = job.now_ns = 320 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kStalled), 0);
  EXPECT_NEAR(static_cast<double>(Seconds(maker.total(), GoodputBucket::kCheckpoint)), 298, 2);
  EXPECT_EQ(Sum(maker.total()), maker.total().wall_ns());
}

TEST(LedgerTest, ACheckpointBesideStepsExplainsNoLaterStall) {
  LedgerJob job = Stepping(0, 61);
  job.attempts[0].phases = {{phases::Phase::kCheckpoint, 10 * kSecond + 1, phases::kStillOpen},
                            {phases::Phase::kCheckpoint, 20 * kSecond + 1, 50 * kSecond}};
  job.rows[0].push_back({.time_ns = 360 * kSecond, .step = 61});
  job.attempts[0].last_ns = job.now_ns = 360 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kStalled), 299);
  EXPECT_LE(Seconds(maker.total(), GoodputBucket::kCheckpoint), 1);
}

TEST(LedgerTest, AHangIsStalledWhileItsProcessesLiveAndDownOtherwise) {
  LedgerJob job = Stepping(0, 61);
  job.now_ns = 60 * kSecond + 1800 * kSecond;
  EXPECT_EQ(Seconds(job.Make().total(), GoodputBucket::kDown), 1800);
  job.attempts[0].lives = true;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kDown), 0);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kStalled), 1799);
  EXPECT_EQ(Sum(maker.total()), 1860 * kSecond);
  job.now_ns = 3 * 3600 * kSecond;
  EXPECT_EQ(Seconds(job.Make().total(), GoodputBucket::kStalled), 0) << "nobody ended its record";
}

TEST(LedgerTest, AMissingEndIsTheNextStep) {
  LedgerJob job = Stepping(10, 6);
  job.attempts[0].phases = {{phases::Phase::kCompile, 2 * kSecond, phases::kStillOpen},
                            {phases::Phase::kCheckpoint, 12 * kSecond, phases::kStillOpen}};
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kCompiling), 8);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kCheckpoint), 1);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 4);
}

TEST(LedgerTest, PhaseMetricsComeOutOfTheStepsAndAreNotCountedTwice) {
  LedgerJob job = Stepping(0, 11);
  for (StepRow& row : job.rows[0]) row.data_wait_seconds = 0.25;
  job.rows[0][5].checkpoint_seconds = 0.5;
  // The same pause as an event.
  job.attempts[0].phases = {
      {phases::Phase::kCheckpoint, 4 * kSecond + kSecond / 4, 4 * kSecond + kSecond * 3 / 4}};
  job.rows[0][7].eval_seconds = 100;  // At most what there is.
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(maker.total()[GoodputBucket::kCheckpoint], kSecond / 2);
  EXPECT_EQ(maker.total()[GoodputBucket::kEvaluation], kSecond);
  EXPECT_EQ(maker.total()[GoodputBucket::kDataWait], 9 * kSecond / 4);
  EXPECT_EQ(Sum(maker.total()), 10 * kSecond);
}

TEST(LedgerTest, ARowThatStandsForSeveralStepsHasTheirDataWait) {
  LedgerJob job;
  job.attempts = {{.first_ns = 0, .last_ns = 100 * kSecond}};
  job.rows = {{{.time_ns = 0, .step = 0},
               {.time_ns = 100 * kSecond, .step = 50, .data_wait_seconds = 0.5}}};
  job.now_ns = 100 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kDataWait), 25);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 75);
  EXPECT_EQ(maker.total().productive_steps, 50u);
}

TEST(LedgerTest, WhatALaterAttemptRepeatsIsWasted) {
  LedgerJob job = Stepping(10, 101);  // Steps 0..100, until 110 s.
  job.attempts.push_back({.attempt = 1, .first_ns = 200 * kSecond, .last_ns = 280 * kSecond});
  job.rows.push_back({});
  for (int64_t i = 0; i <= 60; ++i) {
    job.rows[1].push_back({.time_ns = (220 + i) * kSecond, .step = 60 + i});
  }
  job.now_ns = 280 * kSecond;
  const LedgerMaker maker = job.Make();
  const Ledger& total = maker.total();
  EXPECT_EQ(Seconds(total, GoodputBucket::kWasted), 41);  // 60..100
  EXPECT_EQ(Seconds(total, GoodputBucket::kProductiveStep), 59 + 60);
  EXPECT_EQ(Seconds(total, GoodputBucket::kDown), 90);
  EXPECT_EQ(Seconds(total, GoodputBucket::kInitializing), 30);
  EXPECT_EQ(total.wall_ns(), 280 * kSecond);
  EXPECT_EQ(Sum(total), total.wall_ns());
  EXPECT_EQ(total.rewinds, 1u);
  EXPECT_EQ(total.wasted_steps, 41u);
  ASSERT_EQ(maker.of_spans().size(), 2u);
  EXPECT_EQ(Seconds(maker.of_spans()[0], GoodputBucket::kWasted), 41);
  EXPECT_EQ(maker.of_spans()[1].wall_ns(), 80 * kSecond);
}

int64_t SecondsAsTheyCame(const Ledger& ledger, GoodputBucket bucket) {
  return AmountsAsTheyCame(ledger)[static_cast<size_t>(bucket)] / kSecond;
}

TEST(LedgerTest, AsItCameWhatRepeatsAStepIsWasted) {
  LedgerJob job = Stepping(10, 101);  // Steps 0..100, until 110 s.
  job.attempts.push_back({.attempt = 1, .first_ns = 200 * kSecond, .last_ns = 280 * kSecond});
  job.rows.push_back({});
  for (int64_t i = 0; i <= 60; ++i) {
    job.rows[1].push_back({.time_ns = (220 + i) * kSecond, .step = 60 + i});
  }
  job.now_ns = 280 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(SecondsAsTheyCame(maker.total(), GoodputBucket::kWasted), 40);  // 61..100
  EXPECT_EQ(SecondsAsTheyCame(maker.total(), GoodputBucket::kProductiveStep), 100 + 20);
  EXPECT_EQ(SecondsAsTheyCame(maker.total(), GoodputBucket::kDown), 90);
}

TEST(LedgerTest, AmountsAsTheyCameDoNotFallAsTimeGoesOn) {
  std::mt19937 random(7);
  LedgerJob all;
  int64_t time = 0;
  int64_t step = 0;
  for (uint32_t attempt = 0; attempt < 5; ++attempt) {
    time += 20;
    all.attempts.push_back({.attempt = attempt, .first_ns = time * kSecond, .last_ns = 0});
    all.rows.emplace_back();
    for (int row = 0; row < 60; ++row) {
      time += 1 + static_cast<int>(random() % 5);
      step = random() % 20 == 0 ? std::max<int64_t>(0, step - 15) : step + 1;
      const double data_wait = random() % 4 == 0 ? 0.5 : kAbsent;
      all.rows.back().push_back(
          {.time_ns = time * kSecond, .step = step, .data_wait_seconds = data_wait});
    }
    all.attempts.back().last_ns = time * kSecond;
    step -= 30;
  }
  std::array<int64_t, kGoodputBuckets> before = {};
  LedgerJob job;
  for (size_t attempt = 0; attempt < all.attempts.size(); ++attempt) {
    job.attempts.push_back(all.attempts[attempt]);
    job.rows.emplace_back();
    for (const StepRow& row : all.rows[attempt]) {
      job.rows.back().push_back(row);
      job.attempts.back().last_ns = job.now_ns = row.time_ns;
      const Ledger total = job.Make().total();
      const auto amounts = AmountsAsTheyCame(total);
      for (size_t i = 0; i < kGoodputBuckets; ++i) {
        ASSERT_GE(amounts[i], before[i])
            << GoodputBucketName(static_cast<GoodputBucket>(i)) << " at " << row.time_ns / kSecond;
      }
      ASSERT_EQ(std::accumulate(amounts.begin(), amounts.end(), int64_t{0}), total.wall_ns());
      before = amounts;
    }
  }
  EXPECT_GT(before[static_cast<size_t>(GoodputBucket::kWasted)], 0);
}

TEST(LedgerTest, ARewindWithinAnAttemptWastesWhatItRepeats) {
  LedgerJob job = Stepping(0, 21);
  for (int64_t i = 0; i <= 15; ++i) {
    job.rows[0].push_back({.time_ns = (21 + i) * kSecond, .step = 10 + i});
  }
  job.attempts[0].last_ns = job.now_ns = 36 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kWasted), 11);  // 10..20
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 25);
  EXPECT_EQ(maker.total().rewinds, 1u);
}

TEST(LedgerTest, TheSameStepAgainIsNoProgressAndNoRewind) {
  LedgerJob job = Stepping(0, 11);
  job.rows[0].insert(job.rows[0].begin() + 5, job.rows[0][4]);
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(maker.total().rewinds, 0u);
  EXPECT_EQ(maker.total().productive_steps, 10u);
}

TEST(LedgerTest, AStepThatIsLongOverdueIsStalled) {
  LedgerJob job = Stepping(0, 21);
  for (StepRow& row : job.rows[0]) {
    if (row.step >= 15) row.time_ns += 600 * kSecond;
  }
  job.attempts[0].last_ns = job.now_ns = 620 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kStalled), 600);
  EXPECT_EQ(Seconds(maker.total(), GoodputBucket::kProductiveStep), 20);
}

TEST(LedgerTest, StepsThatBecameSlowForGoodAreNotStalledForEver) {
  LedgerJob job = Stepping(0, 21);
  for (int64_t i = 1; i <= 200; ++i) {
    job.rows[0].push_back({.time_ns = (20 + i * 100) * kSecond, .step = 20 + i});
  }
  job.attempts[0].last_ns = job.now_ns = job.rows[0].back().time_ns;
  const LedgerMaker maker = job.Make();
  EXPECT_LT(Seconds(maker.total(), GoodputBucket::kStalled), 25 * 100);
}

TEST(LedgerTest, ARunningJobCountsUntilWhatIsDecided) {
  LedgerJob job = Stepping(0, 21);
  job.attempts[0].last_ns = job.now_ns = 30 * kSecond;  // Another task's row: ten seconds waiting.
  EXPECT_EQ(job.Make().total().end_ns, 20 * kSecond);
  job.attempts[0].last_ns = job.now_ns = 500 * kSecond;
  const LedgerMaker stalled = job.Make();
  EXPECT_EQ(stalled.total().end_ns, 500 * kSecond);
  EXPECT_EQ(Seconds(stalled.total(), GoodputBucket::kStalled), 479);
  EXPECT_EQ(Sum(stalled.total()), 500 * kSecond);
}

TEST(LedgerTest, AnOpenPhaseOfARunningJobCounts) {
  LedgerJob job = Stepping(0, 21);
  job.attempts[0].phases = {{phases::Phase::kEval, 20 * kSecond + kSecond / 2, phases::kStillOpen}};
  job.attempts[0].last_ns = job.now_ns = 300 * kSecond;
  const LedgerMaker maker = job.Make();
  EXPECT_EQ(maker.total()[GoodputBucket::kEvaluation], 279 * kSecond + kSecond / 2);
  EXPECT_EQ(maker.total()[GoodputBucket::kStalled], 0);
  EXPECT_EQ(Sum(maker.total()), 300 * kSecond);
}

TEST(LedgerTest, ASilentJobIsDownForAnHourAndThenOver) {
  LedgerJob job = Stepping(0, 21);
  job.now_ns = (20 + 299) * kSecond;
  EXPECT_EQ(job.Make().total().end_ns, 20 * kSecond);
  job.now_ns = (20 + 1000) * kSecond;
  const LedgerMaker down = job.Make();
  EXPECT_EQ(Seconds(down.total(), GoodputBucket::kDown), 1000);
  EXPECT_EQ(Sum(down.total()), down.total().wall_ns());
  job.now_ns = (20 + 3601) * kSecond;
  EXPECT_EQ(job.Make().total().end_ns, 20 * kSecond);
  job.attempts[0].ended = true;
  job.now_ns = (20 + 1000) * kSecond;
  EXPECT_EQ(job.Make().total().end_ns, 20 * kSecond);
}

TEST(LedgerTest, AfterTheLastStepOfAnAttemptThatEndedIsOther) {
  LedgerJob job = Stepping(0, 21);
  job.attempts[0].last_ns = job.now_ns = 200 * kSecond;
  job.attempts[0].ended = job.attempts[0].ended_well = true;
  EXPECT_EQ(Seconds(job.Make().total(), GoodputBucket::kOther), 180);
  job.attempts[0].ended_well = false;  // It hung, and was killed.
  EXPECT_EQ(Seconds(job.Make().total(), GoodputBucket::kStalled), 179);
}

TEST(LedgerTest, TheNewerOfTwoAttemptsAtOnceHasTheTime) {
  LedgerJob job = Stepping(0, 101);
  job.attempts.push_back({.attempt = 1, .first_ns = 50 * kSecond, .last_ns = 80 * kSecond});
  job.rows.push_back(
      {{.time_ns = 60 * kSecond, .step = 200}, {.time_ns = 61 * kSecond, .step = 201}});
  const LedgerMaker maker = job.Make();
  ASSERT_EQ(maker.spans().size(), 2u);
  EXPECT_EQ(maker.of_spans()[0].wall_ns(), 50 * kSecond);
  EXPECT_EQ(maker.total()[GoodputBucket::kDown], 0);
}

TEST(LedgerTest, FiguresAreOfTheNewestThousandSteps) {
  const LedgerMaker maker = Stepping(5, 1500).Make();
  EXPECT_EQ(maker.samples().size(), kMaxStepSamples);
  EXPECT_EQ(maker.samples().back().step, 1499);
  EXPECT_EQ(maker.samples().back().seconds, 1);
}

// Whatever comes: no second is lost, none is counted twice, none is negative.
TEST(LedgerTest, EverySecondIsInExactlyOneBucketWhateverComes) {
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    const LedgerJob job = RandomLedgerJob(seed).Make();
    const LedgerMaker maker = job.Make();
    ASSERT_EQ(Sum(maker.total()), maker.total().wall_ns()) << "seed " << seed;
    int64_t of_spans = 0;
    for (const Ledger& ledger : maker.of_spans()) {
      ASSERT_EQ(Sum(ledger), ledger.wall_ns()) << "seed " << seed;
      of_spans += ledger.wall_ns();
    }
    for (const int64_t ns : maker.total().ns) ASSERT_GE(ns, 0) << "seed " << seed;
    for (const int64_t ns : AmountsAsTheyCame(maker.total())) ASSERT_GE(ns, 0) << "seed " << seed;
    const Ledger& total = maker.total();
    ASSERT_LE(of_spans, total.wall_ns());
    ASSERT_LE(total.wall_ns() - of_spans,
              total[GoodputBucket::kDown] + total[GoodputBucket::kOther]);
    ASSERT_LE(total.end_ns, std::max(job.now_ns, total.begin_ns));
  }
}

}  // namespace
}  // namespace tacho::server::goodput

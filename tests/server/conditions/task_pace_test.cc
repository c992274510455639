#include "server/conditions/window/task_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::server::conditions {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Nothing(int64_t, int64_t) { return 0; }

double Quantile(const RowPace& pace, double q) {
  std::vector<CountedInterval> intervals;
  pace.AppendTo(&intervals);
  return QuantileOf(std::move(intervals), q);
}

TEST(RowPaceTest, QuantilesAreThoseOfTheIntervals) {
  RowPace pace;
  int64_t time = 0;
  for (int64_t step = 0; step <= 100; ++step) {
    pace.Note(time, step);
    time += step % 10 == 9 ? 30 * kSecond : kSecond / 2;
    pace.Settle(time, Nothing);
  }
  EXPECT_EQ(pace.intervals(), 100u);
  EXPECT_EQ(Quantile(pace, 0.5), 0.5);
  EXPECT_EQ(Quantile(pace, 0.95), 30);
}

TEST(RowPaceTest, AnOlderPaceIsForgottenAndMemoryIsBounded) {
  RowPace pace;
  int64_t time = 0;
  int64_t step = 0;
  const auto go = [&](int rows, int64_t ns) {
    for (int i = 0; i < rows; ++i) pace.Note(time += ns, ++step);
    pace.Settle(time, Nothing);
  };
  go(5'000, kSecond);
  EXPECT_LE(pace.intervals(), 2 * RowPace::kGeneration);
  EXPECT_EQ(Quantile(pace, 0.99), 1);
  go(1'100, kSecond / 8);
  EXPECT_EQ(Quantile(pace, 0.99), 0.125);
}

TEST(RowPaceTest, TheLongestPausesOfADayAreKeptWithoutThePhasesInThem) {
  RowPace pace;
  int64_t time = 0;
  int64_t step = 0;
  const auto pause = [&](int64_t seconds, int64_t covered) {
    pace.Note(time, step++);
    pace.Note(time += seconds * kSecond, step);
    pace.Settle(time, [&](int64_t, int64_t) { return covered * kSecond; });
  };
  pause(60, 50);
  pause(300, 300);  // All of it is explained.
  EXPECT_EQ(pace.pauses().size(), 1u);
  EXPECT_EQ(pace.pauses()[0].seconds, 10);
  for (int64_t i = 2; i < 40; ++i) pause(i, 0);
  ASSERT_EQ(pace.pauses().size(), RowPace::kMaxPauses);
  for (const Pause& one : pace.pauses()) EXPECT_GE(one.seconds, 37);
  time += 90'000 * kSecond;
  pace.Break();
  pause(3, 0);
  ASSERT_EQ(pace.pauses().size(), 1u) << "a day has passed";
  EXPECT_EQ(pace.pauses()[0].seconds, 3);
  EXPECT_EQ(pace.pauses()[0].end_ns, time);
}

TEST(RowPaceTest, APhaseARestartOfTrainingAndMissedRowsMakeNoInterval) {
  RowPace pace;
  pace.Note(0, 0);
  pace.Note(1 * kSecond, 1);
  pace.Note(401 * kSecond, 2);  // After a checkpoint.
  pace.Note(800 * kSecond, 1);  // After a restore.
  pace.Note(801 * kSecond, 2);
  pace.Note(801 * kSecond, 2);  // The same row again.
  pace.Note(790 * kSecond, 3);  // Late.
  pace.Break();
  pace.Note(1900 * kSecond, 900);
  EXPECT_TRUE(pace.waits());
  pace.Settle(400 * kSecond, Nothing);
  EXPECT_TRUE(pace.waits()) << "the events may still come";
  pace.Settle(2000 * kSecond,
              [](int64_t from, int64_t to) { return to - from > 2 * kSecond ? to - from : 0; });
  EXPECT_FALSE(pace.waits());
  EXPECT_EQ(pace.intervals(), 2u);
  EXPECT_EQ(Quantile(pace, 1), 1);
}

TEST(TaskPaceTest, TheSourceWithTheMostRowsShowsThePace) {
  TaskPace pace;
  EXPECT_EQ(pace.Best(), nullptr);
  for (int64_t step = 0; step <= 100; ++step) {
    if (step % 50 == 0) pace.Of(7).Note(step * kSecond, step);  // Evaluations.
    pace.Of(8).Note(step * kSecond, step);
  }
  pace.Settle(100 * kSecond, Nothing);
  ASSERT_NE(pace.Best(), nullptr);
  EXPECT_EQ(pace.Best()->intervals(), 100u);
  RowPace stored;
  for (int64_t step = 0; step <= 300; ++step) stored.Note(step * kSecond / 4, step);
  pace.TakeStored(stored);
  EXPECT_EQ(pace.Best()->intervals(), 300u);
  pace.TakeStored(RowPace());
  EXPECT_EQ(pace.Best()->intervals(), 300u) << "fewer rows show less";
  for (uint64_t source = 100; source < 200; ++source) pace.Of(source).Note(kSecond, 1);
  EXPECT_NE(pace.Best(), nullptr);
}

}  // namespace
}  // namespace tacho::server::conditions

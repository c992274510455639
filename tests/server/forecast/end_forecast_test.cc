// Forecasts of the ends of jobs whose pace is known.
#include "server/forecast/end_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace tacho::server::forecast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

double SecondsAfter(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

TEST(EndForecastTest, AnEvenPaceGoesOn) {
  Progress progress;
  int64_t now = kBegin;
  for (int64_t step = 0; step <= 1000; ++step, now += 2 * kSecond) progress.Add(now, step);
  now -= 2 * kSecond;
  const auto end = ForecastEnd(progress.Take(), 3000, now);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_NEAR(SecondsAfter(now, end->likely_ns), 4000, 1);
  EXPECT_LE(end->earliest_ns, end->likely_ns);
  EXPECT_NEAR(SecondsAfter(end->likely_ns, end->latest_ns), 56, 2);  // 1.4 %.
}

TEST(EndForecastTest, CheckpointsAndTimeDownAreExpectedToComeAgain) {
  Progress progress;
  int64_t now = kBegin;
  for (int64_t step = 0; step < 2400; ++step) {
    now += kSecond + (step % 100 == 99 ? 50 * kSecond : 0);
    progress.Add(now, step);
  }
  const auto end = ForecastEnd(progress.Take(), 4799, now);
  ASSERT_TRUE(end.ok());
  EXPECT_NEAR(SecondsAfter(now, end->likely_ns), 2400 * 1.5, 60);
}

TEST(EndForecastTest, OnePauseIsNotExpectedInEveryStretch) {
  Progress progress;
  int64_t now = kBegin;
  for (int64_t step = 0; step <= 2400; ++step) {
    now += kSecond + (step == 2390 ? 1200 * kSecond : 0);
    progress.Add(now, step);
  }
  const auto end = ForecastEnd(progress.Take(), 4800, now);
  ASSERT_TRUE(end.ok());
  EXPECT_NEAR(SecondsAfter(now, end->likely_ns), 4800, 50);  // 1,200 s in each 12 stretches.
}

TEST(EndForecastTest, TheBandHoldsTheEndOfUnevenJobsAboutAsOftenAsItSays) {
  int inside = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> pause(1);
    Progress progress;
    int64_t now = kBegin, known = 0, end_ns = 0;
    for (int64_t step = 0; step <= 2000; ++step) {
      // Now and then a long pause.
      now += kSecond;
      if (random() % 40 == 0) now += static_cast<int64_t>(60e9 * pause(random));
      if (step <= 700) progress.Add(now, step);
      if (step == 700) known = now;
      end_ns = now;
    }
    const auto end = ForecastEnd(progress.Take(), 2000, known);
    ASSERT_TRUE(end.ok());
    inside += end_ns >= end->earliest_ns && end_ns <= end->latest_ns ? 1 : 0;
  }
  EXPECT_GE(inside, 70);
}

TEST(EndForecastTest, AJobThatStandsStillEndsLaterByThat) {
  Progress progress;
  for (int64_t step = 0; step <= 100; ++step) progress.Add(kBegin + step * kSecond, step);
  const auto points = progress.Take();
  const int64_t last = kBegin + 100 * kSecond;
  const auto soon = ForecastEnd(points, 200, last);
  const auto late = ForecastEnd(points, 200, last + 3600 * kSecond);
  ASSERT_TRUE(soon.ok() && late.ok());
  EXPECT_NEAR(SecondsAfter(soon->likely_ns, late->likely_ns), 3599, 1);
}

TEST(EndForecastTest, TooLittleIsRefusedInWords) {
  Progress progress;
  for (int64_t step = 0; step < 9; ++step) progress.Add(kBegin + step, step);
  const auto points = progress.Take();
  EXPECT_THAT(std::string(ForecastEnd(points, 100, kBegin).status().message()),
              HasSubstr("9 times"));
  Progress more;
  for (int64_t step = 0; step < 20; ++step) more.Add(kBegin + step, step);
  EXPECT_EQ(ForecastEnd(more.Take(), 19, kBegin).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(EndForecastTest, AnEndBehindAllTimesIsRefused) {
  Progress progress;
  for (int64_t step = 0; step < 20; ++step) progress.Add(kBegin + step * kSecond, step);
  const auto end =
      ForecastEnd(progress.Take(), std::numeric_limits<int64_t>::max(), kBegin + 20 * kSecond);
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("after the year 2262"));
}

TEST(ProgressTest, KeepsTheEndsAndOnlyWhatIsFurther) {
  Progress progress;
  for (int64_t step = 0; step < 100'001; ++step) {
    progress.Add(kBegin + step * kSecond, step);
    progress.Add(kBegin + step * kSecond + 1, step / 2);
  }
  const auto points = progress.Take();
  EXPECT_LE(points.size(), Progress::kMost);
  EXPECT_GE(points.size(), Progress::kMost / 3);
  EXPECT_EQ(points.front().step, 0);
  EXPECT_EQ(points.back().step, 100'000);
  for (const ProgressPoint& point : points) {
    EXPECT_EQ(point.time_ns, kBegin + point.step * kSecond);
  }
}

}  // namespace
}  // namespace tacho::server::forecast

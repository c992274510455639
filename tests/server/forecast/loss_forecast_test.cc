// Forecasts of curves whose end is known.
#include "server/forecast/loss_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace tacho::server::forecast {
namespace {

using ::testing::HasSubstr;

double Law(double step) { return 2 + 6 * std::pow(step, -0.4); }

std::vector<CurvePoint> Curve(int64_t steps, double noise, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> off(0, noise);
  CurvePoints points;
  for (int64_t step = 0; step < steps; ++step) {
    points.Add(step, Law(static_cast<double>(step + 1)) + (noise > 0 ? off(random) : 0));
  }
  return points.Take();
}

TEST(LossForecastTest, AnExactPowerLawIsContinued) {
  const auto forecast = ForecastLoss(Curve(10'000, 0, 1), 40'000);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_NEAR(forecast->value, Law(40'000), 0.01);
  EXPECT_LE(forecast->low, Law(40'000));
  EXPECT_GE(forecast->high, Law(40'000));
  EXPECT_NEAR(forecast->now, Law(9'750), 0.01);
}

TEST(LossForecastTest, TheBandHoldsTheTruthOfNoisyCurvesAtLeastAsOftenAsItSays) {
  int inside = 0;
  double width = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const auto forecast = ForecastLoss(Curve(3'000, 0.3, seed), 9'000);
    ASSERT_TRUE(forecast.ok()) << forecast.status();
    // The mean of the last twentieth.
    const double truth = Law(8'775);
    inside += truth >= forecast->low && truth <= forecast->high ? 1 : 0;
    width += (forecast->high - forecast->low) / 60;
  }
  EXPECT_GE(inside, 48);
  EXPECT_LT(width, 0.6);  // The curve falls from 8 to 2.2.
}

TEST(LossForecastTest, ALevelCurveStays) {
  CurvePoints points;
  for (int64_t step = 0; step < 500; ++step) points.Add(step, step % 2 == 0 ? 0.9 : 1.1);
  const auto forecast = ForecastLoss(points.Take(), 2'000);
  ASSERT_TRUE(forecast.ok());
  EXPECT_NEAR(forecast->value, 1, 0.02);
  EXPECT_LE(forecast->high - forecast->low, 0.2);
}

TEST(LossForecastTest, ALossThatWasNeverNegativeIsNotForecastToBe) {
  CurvePoints points;
  for (int64_t step = 0; step < 400; ++step) {
    points.Add(step, std::max(0.0, 1 - 0.0024 * static_cast<double>(step)));
  }
  const auto forecast = ForecastLoss(points.Take(), 4'000);
  ASSERT_TRUE(forecast.ok());
  EXPECT_GE(forecast->value, 0);
  EXPECT_GE(forecast->low, 0);
}

TEST(LossForecastTest, TooLittleOrTooFarIsRefusedInWords) {
  EXPECT_THAT(std::string(ForecastLoss(Curve(29, 0, 1), 100).status().message()),
              HasSubstr("there are 29 values"));
  EXPECT_EQ(ForecastLoss(Curve(100, 0, 1), 100).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(ForecastLoss(Curve(100, 0, 1), 2'001).status().message()),
              HasSubstr("too far"));
  EXPECT_TRUE(ForecastLoss({}, 1).status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST(LossForecastTest, ValuesThatAreNotFiniteAndStepsBelowZeroAreLeftOut) {
  CurvePoints points;
  points.Add(-1, 1);
  points.Add(0, std::nan(""));
  points.Add(1, std::numeric_limits<double>::infinity());
  points.Add(2, 3);
  const auto taken = points.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].step, 3);
  EXPECT_EQ(taken[0].value, 3);
}

TEST(LossForecastTest, AHugeOrOddCurveMakesFiniteNumbers) {
  CurvePoints points;
  for (int64_t step = 0; step < 300; ++step) points.Add(step, step % 7 == 0 ? 1e150 : -1e150);
  const auto forecast = ForecastLoss(points.Take(), 600);
  ASSERT_TRUE(forecast.ok());
  EXPECT_FALSE(std::isnan(forecast->value));
  EXPECT_LE(forecast->low, forecast->high);
}

TEST(CurvePointsTest, ALongCurveKeepsItsMeanInBoundedMemory) {
  CurvePoints points;
  constexpr int64_t kSteps = 1'000'003;
  for (int64_t step = 0; step < kSteps; ++step) points.Add(step, static_cast<double>(step));
  const auto taken = points.Take();
  EXPECT_LE(taken.size(), CurvePoints::kMost);
  double values = 0, sum = 0;
  for (const CurvePoint& point : taken) {
    values += point.values;
    sum += point.value * point.values;
  }
  EXPECT_EQ(values, kSteps);
  EXPECT_NEAR(sum / values, (kSteps - 1) / 2.0, 1e-3);
}

}  // namespace
}  // namespace tacho::server::forecast

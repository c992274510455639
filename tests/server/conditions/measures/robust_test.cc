#include "server/conditions/measures/robust.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/quantile.h"
#include "tests/server/conditions/detectors/curve_windows.h"

namespace tacho::server::conditions {
namespace {

using ::testing::DoubleNear;

TEST(RobustTrendTest, AWildValueDoesNotMoveTheSlope) {
  std::vector<double> x, y;
  for (int i = 0; i < 20; ++i) {
    x.push_back(i);
    y.push_back(3.0 + 2.0 * i);
  }
  y[10] = 1e9;
  const RobustTrend trend = FitTrend(x, y);
  ASSERT_TRUE(trend.valid);
  EXPECT_DOUBLE_EQ(trend.slope, 2);
  EXPECT_DOUBLE_EQ(trend.intercept, 3);
  EXPECT_DOUBLE_EQ(trend.At(50), 103);
  EXPECT_LE(trend.slope_low, 2);
  EXPECT_GE(trend.slope_high, 2);
}

TEST(RobustTrendTest, TauIsOneForWhatAlwaysRisesAndNearNoughtForASeeSaw) {
  const std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_DOUBLE_EQ(FitTrend(x, x).tau, 1);
  EXPECT_NEAR(FitTrend(x, x).z, 4.02, 0.01);  // 45 / sqrt(125)
  EXPECT_LT(FitTrend(x, std::vector<double>{0, 9, 0, 9, 0, 9, 0, 9, 0, 9}).tau, 0.15);
  EXPECT_EQ(FitTrend(x, std::vector<double>(10, 4.0)).tau, 0);
}

TEST(RobustTrendTest, FewPointsOrOneMomentSayNothing) {
  EXPECT_FALSE(FitTrend(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}).valid);
  EXPECT_FALSE(FitTrend(std::vector<double>(5, 1.0), std::vector<double>{1, 2, 3, 4, 5}).valid);
}

TEST(RobustTest, MadIsAStandardDeviationThatWildValuesDoNotMove) {
  std::vector<double> values = Noisy(std::vector<double>(2001, 5), 2);
  EXPECT_THAT(ScaledMad(values, Median(values)), DoubleNear(2, 0.15));
  for (size_t i = 0; i < 400; ++i) values[i] = 1e12;
  EXPECT_LT(ScaledMad(values, Median(values)), 3);
}

TEST(RobustTest, ALineHasAnErrorThatCoversTheTruth) {
  int covered = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> x = Curved(40, [](double i) { return i; });
    const std::vector<double> y = Noisy(Curved(40, [](double i) { return 3 - 0.1 * i; }), 1, seed);
    const Line line = FitLine(x, y);
    ASSERT_TRUE(line.valid);
    covered += std::abs(line.slope + 0.1) < 2 * line.slope_error ? 1 : 0;
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(covered, 200);
}

TEST(RobustTest, ThereIsNoLineThroughTooFewPointsOrOneX) {
  EXPECT_FALSE(FitLine({1, 2, 3}, {1, 2, 3}).valid);
  EXPECT_FALSE(FitLine({1, 1, 1, 1}, {1, 2, 3, 4}).valid);
}

TEST(RobustTest, AutocorrelationFindsThePeriod) {
  const std::vector<double> wave = Curved(96, [](double i) { return std::sin(i * M_PI / 4); });
  EXPECT_GT(Autocorrelation(wave, 8), 0.8);
  EXPECT_LT(Autocorrelation(wave, 4), -0.8);
  EXPECT_EQ(Autocorrelation({2, 2, 2}, 1), 0);
}

TEST(ChangePointTest, IsTheLargestRise) {
  std::vector<double> values(60, 1.0);
  for (size_t i = 0; i < values.size(); ++i) values[i] += 0.001 * static_cast<double>(i * 7 % 13);
  EXPECT_GT(FindRise(values, 5).p, 0.01);
  for (size_t i = 40; i < values.size(); ++i) values[i] += 1;
  values[10] = 1000;
  EXPECT_EQ(FindRise(values, 5).index, 40u);
  EXPECT_LT(FindRise(values, 5).p, 1e-6);
  EXPECT_EQ(FindRise({}, 5).p, 1);
  EXPECT_EQ(FindRise({1, 2, 3}, 5).p, 1);
  EXPECT_GT(FindRise(std::vector<double>(50, 2.0), 5).p, 0.9) << "all the same";
}

}  // namespace
}  // namespace tacho::server::conditions

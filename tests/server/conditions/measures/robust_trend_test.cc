#include <gtest/gtest.h>

#include <vector>

#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

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

}  // namespace
}  // namespace tacho::server::conditions

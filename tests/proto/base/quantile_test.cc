#include "proto/base/quantile.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tacho {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Quantile, InterpolatesBetweenTheClosestRanks) {
  EXPECT_EQ(QuantileOfSorted({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(QuantileOfSorted({1, 2, 3}, 0.5), 2);
  EXPECT_EQ(QuantileOfSorted({5}, 0.99), 5);
  EXPECT_EQ(QuantileOfSorted({1, 2}, 0), 1);
  EXPECT_EQ(QuantileOfSorted({1, 2}, 1), 2);
  EXPECT_EQ(QuantileOfSorted({-kInf, kInf, kInf}, 0.75), kInf);
  EXPECT_TRUE(std::isnan(QuantileOfSorted({}, 0.5)));
}

TEST(Quantile, TakesValuesInAnyOrder) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Quantile({0, 10}, 0.25), 2.5);
}

TEST(Quantile, UnsortedAndSortedValuesAgree) {
  const std::vector<double> sorted = {-kInf, 0.1, 0.1, 0.7, 3, 1e9, kInf};
  const std::vector<double> mixed = {3, 0.1, kInf, -kInf, 1e9, 0.7, 0.1};
  for (double q = 0.2; q < 0.8; q += 0.01) {
    EXPECT_EQ(Quantile(mixed, q), QuantileOfSorted(sorted, q)) << q;
  }
}

TEST(UpperMedian, IsOneOfTheValues) {
  EXPECT_EQ(UpperMedian(std::vector<int64_t>{7, 1, 3}), 3);
  EXPECT_EQ(UpperMedian(std::vector<int64_t>{1, 4, 3, 9}), 4);
}

}  // namespace
}  // namespace tacho

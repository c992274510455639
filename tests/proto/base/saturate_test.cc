#include "proto/base/saturate.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace tacho {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(SaturatingCast, KeepsWhatFits) {
  EXPECT_EQ(SaturatingCast<int64_t>(-2.9), -2);
  EXPECT_EQ(SaturatingCast<int64_t>(0x1p62), int64_t{1} << 62);
  EXPECT_EQ(SaturatingCast<int64_t>(-0x1p63), kMin);
  EXPECT_EQ(SaturatingCast<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(SaturatingCast<uint32_t>(4294967295.0), 4294967295u);
  EXPECT_EQ(SaturatingCast<int>(2147483647.5), 2147483647);
}

TEST(SaturatingCast, EndsAtTheEndsOfTheRange) {
  for (const double beyond : {0x1p63, 1e300, kInfinity}) {
    EXPECT_EQ(SaturatingCast<int64_t>(beyond), kMax) << beyond;
    EXPECT_EQ(SaturatingCast<int64_t>(-1.1 * beyond), kMin) << beyond;
    EXPECT_EQ(SaturatingCast<uint64_t>(-beyond), 0u) << beyond;
    EXPECT_EQ(SaturatingCast<uint32_t>(beyond), 4294967295u) << beyond;
  }
  EXPECT_EQ(SaturatingCast<uint64_t>(0x1p64), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(SaturatingCast<uint32_t>(4294967296.0), 4294967295u);
}

TEST(SaturatingCast, TakesNoNumberForZero) {
  EXPECT_EQ(SaturatingCast<int64_t>(std::nan("")), 0);
  EXPECT_EQ(SaturatingCast<uint32_t>(-std::nan("")), 0u);
}

TEST(AddSeconds, StaysWithinTimes) {
  EXPECT_EQ(AddSeconds(5, 1.5), 1'500'000'005);
  EXPECT_EQ(AddSeconds(5, -1.5), -1'499'999'995);
  EXPECT_EQ(AddSeconds(5, 1e300), kMax);
  EXPECT_EQ(AddSeconds(-5, -kInfinity), kMin);
  EXPECT_EQ(AddSeconds(kMax, 1), kMax);
  EXPECT_EQ(AddSeconds(7, std::nan("")), 7);
}

}  // namespace
}  // namespace tacho

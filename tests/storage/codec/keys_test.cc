#include "storage/codec/keys.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// The store depends on this order: a break here returns wrong ranges, not an error.
TEST(KeysTest, ByteOrderIsMetricSeriesTimePositionOrder) {
  const std::vector<ValueColumnKey> ascending = {
      {1, 1, 1, kMin, 1}, {1, 1, 1, -1, 1},  {1, 1, 1, 0, 1}, {1, 1, 1, 0, 2}, {1, 1, 1, kMax, 1},
      {1, 1, 2, 0, 1},    {1, 1, 256, 0, 1}, {1, 2, 1, 0, 1}, {2, 1, 1, 0, 1}, {256, 1, 1, 0, 1}};
  for (size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(ascending[i - 1].Encode(), ascending[i].Encode()) << "at " << i;
  }
}

TEST(KeysTest, DecodesWhatItEncodesAndNothingElse) {
  const ValueColumnKey key{7, 8, 9, -42, 10};
  const std::string bytes = key.Encode();
  const auto decoded = ValueColumnKey::Decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->Encode(), bytes);
  EXPECT_FALSE(ValueColumnKey::Decode(bytes.substr(1)));
  EXPECT_FALSE(ValueColumnKey::Decode(bytes + "x"));
  EXPECT_FALSE(ValueColumnKey::Decode(""));
}

TEST(KeysTest, DaysAreRoundedDownBeforeTheEpochToo) {
  EXPECT_EQ(DayOf(0), 0);
  EXPECT_EQ(DayOf(kDayNs - 1), 0);
  EXPECT_EQ(DayOf(kDayNs), 1);
  EXPECT_EQ(DayOf(-1), -1);
  EXPECT_EQ(DayOf(-kDayNs), -1);
  EXPECT_EQ(DayOf(-kDayNs - 1), -2);
  EXPECT_EQ(DayOf(kMin), -106752);
}

TEST(KeysTest, PartitionNamesRoundTrip) {
  EXPECT_EQ(ParsePartitionName(PartitionName(20778)), 20778);
  EXPECT_EQ(ParsePartitionName(PartitionName(-3)), -3);
  EXPECT_EQ(ParsePartitionName("default"), std::nullopt);
  EXPECT_EQ(ParsePartitionName("day.x"), std::nullopt);
}

TEST(KeysTest, PrefixEndIsAboveEverythingWithThePrefix) {
  EXPECT_EQ(PrefixEnd("ab"), "ac");
  EXPECT_EQ(PrefixEnd(std::string("a\xff", 2)), "b");
}

}  // namespace
}  // namespace tacho::storage

#include "storage/index/number_table.h"

#include "absl/hash/hash.h"
#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

TEST(NumberTableTest, FindsEveryNumberWhileItGrows) {
  NumberTable table;
  const auto hash = [](uint32_t number) { return absl::HashOf(number); };
  const auto find = [&](uint32_t wanted) {
    return table.Find(hash(wanted), [&](uint32_t number) { return number == wanted; });
  };
  constexpr uint32_t kNumbers = 200'000;
  for (uint32_t number = 0; number < kNumbers; ++number) {
    EXPECT_FALSE(find(number).has_value());
    table.Add(hash(number), number);
    ASSERT_EQ(find(number), number);
    ASSERT_EQ(find(number / 2), number / 2);
  }
  for (uint32_t number = 0; number < kNumbers; ++number) ASSERT_EQ(find(number), number);
  EXPECT_FALSE(find(kNumbers).has_value());
}

// Equal hashes cannot be separated by splitting.
TEST(NumberTableTest, HashesMayBeEqualOrDifferInFewBits) {
  for (const size_t step : {size_t{0}, size_t{1}, size_t{1} << 31}) {
    NumberTable table;
    for (uint32_t number = 0; number < 3000; ++number) table.Add(number * step, number);
    for (uint32_t number = 0; number < 3000; ++number) {
      ASSERT_EQ(table.Find(number * step, [&](uint32_t n) { return n == number; }), number);
    }
  }
}

}  // namespace
}  // namespace tacho::storage

#include "storage/journal/entry_sizes.h"

#include <deque>
#include <numeric>
#include <random>

#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

TEST(EntrySizesTest, FewAreExactWhicheverEndTheyLeaveBy) {
  std::mt19937_64 random(3);
  EntrySizes sizes;
  std::deque<uint32_t> model;
  for (int i = 0; i < 20'000; ++i) {
    if (model.empty() || random() % 3 != 0) {
      model.push_back(static_cast<uint32_t>(random() % 1000));
      sizes.PushBack(model.back());
    } else if (random() % 4 != 0) {
      model.pop_front();
      sizes.PopFront();
    } else {
      model.pop_back();
      sizes.PopBack();
    }
    ASSERT_EQ(sizes.total(), std::accumulate(model.begin(), model.end(), uint64_t{0})) << i;
    if (model.size() > 40) {
      model.pop_front();
      sizes.PopFront();
    }
  }
}

TEST(EntrySizesTest, ManyAreExactAtTheBordersOfBlocksAndAtTheEnd) {
  std::mt19937_64 random(3);
  EntrySizes sizes;
  std::deque<uint32_t> model;
  uint64_t total = 0;
  const size_t count = EntrySizes::kExact + 50 * EntrySizes::kBlock;
  for (size_t i = 0; i < count; ++i) {
    model.push_back(static_cast<uint32_t>(random() % 1000));
    sizes.PushBack(model.back());
    total += model.back();
  }
  EXPECT_EQ(sizes.total(), total);
  for (size_t i = 0; i < count; ++i) {
    if (i % EntrySizes::kBlock == 0) {
      ASSERT_EQ(sizes.total(), total) << i;
    }
    total -= model[i];
    sizes.PopFront();
  }
  EXPECT_EQ(sizes.total(), 0u);
}

TEST(EntrySizesTest, PoppingBackReachesIntoBlocks) {
  EntrySizes sizes;
  const size_t count = EntrySizes::kExact + 3 * EntrySizes::kBlock;
  for (size_t i = 0; i < count; ++i) sizes.PushBack(static_cast<uint32_t>(i % 7));
  for (size_t i = 0; i < count; ++i) sizes.PopBack();
  EXPECT_EQ(sizes.total(), 0u);
  sizes.PushBack(5);
  EXPECT_EQ(sizes.total(), 5u);
}

}  // namespace
}  // namespace tacho::storage

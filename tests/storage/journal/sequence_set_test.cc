#include "storage/journal/sequence_set.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SequenceSetTest, InOrderIsAWatermarkOnly) {
  SequenceSet set;
  for (uint64_t s = 1; s <= 1000; ++s) set.Add(s);
  EXPECT_EQ(set.watermark(), 1000u);
  EXPECT_THAT(set.ahead(), IsEmpty());
}

TEST(SequenceSetTest, ABacklogThatCatchesUpClosesTheGap) {
  SequenceSet set;
  set.Add({1, 10});
  set.Add({100, 120});
  EXPECT_THAT(set.ahead(), ElementsAre(SequenceRange{100, 120}));
  EXPECT_TRUE(set.Contains(110));
  EXPECT_FALSE(set.Contains(99));
  set.Add({11, 99});
  EXPECT_EQ(set.watermark(), 120u);
  EXPECT_THAT(set.ahead(), IsEmpty());
}

TEST(SequenceSetTest, AgreesWithAPlainSetInAnyOrder) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    SequenceSet set;
    std::set<uint64_t> model;
    for (int i = 0; i < 60; ++i) {
      const uint64_t first = 1 + random() % 100;
      const uint64_t last = first + random() % 6;
      set.Add({first, last});
      for (uint64_t s = first; s <= last; ++s) model.insert(s);
      for (uint64_t s = 1; s < 110; ++s) ASSERT_EQ(set.Contains(s), model.contains(s)) << s;
    }
    EXPECT_EQ(SequenceSet::Decode(set.Encode()), set);
  }
}

TEST(SequenceSetTest, RefusesBytesThatAreNoSet) {
  EXPECT_FALSE(SequenceSet::Decode(""));
  EXPECT_FALSE(SequenceSet::Decode(std::string("\x05\x01\x06\x07", 4))) << "adjacent to the mark";
  EXPECT_FALSE(SequenceSet::Decode(std::string("\x05\x01\x09\x08", 4))) << "backwards";
  EXPECT_FALSE(SequenceSet::Decode(std::string("\x05\x00\x00", 3))) << "too long";
}

TEST(OriginRecordTest, DayMayBeMissingAndNothingMayFollowIt) {
  OriginRecord record;
  record.durable.Add({1, 3});
  record.durable.Add({7, 9});
  const auto without = OriginRecord::Decode(record.Encode());
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->durable, record.durable);
  EXPECT_FALSE(without->heard_day.has_value());
  record.heard_day = 20'778;
  const auto with = OriginRecord::Decode(record.Encode());
  ASSERT_TRUE(with.has_value());
  EXPECT_EQ(with->durable, record.durable);
  EXPECT_EQ(with->heard_day, record.heard_day);
  EXPECT_FALSE(OriginRecord::Decode(record.Encode() + "x").has_value());
}

}  // namespace
}  // namespace tacho::storage

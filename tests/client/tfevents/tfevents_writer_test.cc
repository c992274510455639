#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "client/tfevents/event.h"
#include "client/tfevents/record.h"
#include "client/tfevents/tensor.h"
#include "client/tfevents/writer.h"
#include "gtest/gtest.h"

namespace tacho::client {
namespace {

constexpr uint64_t kLimit = 1 << 20;

TEST(TfeventsWriterTest, WhatIsWrittenIsReadAgain) {
  std::string file = FirstRecord(1.5e9);
  const RecordView version = ReadRecord(file, kLimit);
  ASSERT_EQ(version.kind, RecordView::Kind::kRecord);
  EXPECT_NE(version.payload.find("brain.Event:2"), absl::string_view::npos);
  const size_t begin = file.size();
  AppendScalar(
      {.wall_time = 1.5e9, .step = -3, .tag = "loss{chip=\"0\"}", .value_bits = 0x7f800001}, &file);
  const RecordView record = ReadRecord(absl::string_view(file).substr(begin), kLimit);
  ASSERT_EQ(record.kind, RecordView::Kind::kRecord);
  EXPECT_EQ(record.bytes, file.size() - begin);
  TfEvent event;
  TfValue value;
  std::string tag;
  ASSERT_TRUE(DecodeTfEvent(record.payload, &event, [&](const TfValue& each) {
    value = each;
    tag = std::string(each.tag);
  }));
  EXPECT_EQ(event.wall_time, 1.5e9);
  EXPECT_EQ(event.step, -3);
  EXPECT_EQ(tag, "loss{chip=\"0\"}");
  EXPECT_EQ(value.kind, TfValue::Kind::kSimple);
  const double signalling = WidenFloat(0x7f800001);
  EXPECT_EQ(std::memcmp(&value.value, &signalling, sizeof(double)), 0);
}

TEST(TfeventsWriterTest, EveryFloatIsNarrowedToItself) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    bool exact = false;
    EXPECT_EQ(NarrowToFloat(WidenFloat(bits), &exact), bits);
    EXPECT_TRUE(exact) << bits;
  }
}

TEST(TfeventsWriterTest, WhatIsNoFloatIsSaid) {
  bool exact = true;
  NarrowToFloat(0.1, &exact);
  EXPECT_FALSE(exact);
  EXPECT_EQ(NarrowToFloat(1e300, &exact), 0x7f800000);
  EXPECT_FALSE(exact);
  // A payload in the lower bits alone: it stays a NaN.
  const double nan = DoubleFromBits(0x7ff8000000000000 + 1);
  EXPECT_EQ(NarrowToFloat(nan, &exact), 0x7fc00000);
  EXPECT_FALSE(exact);
  NarrowToFloat(DoubleFromBits(0x7ff0000000000001), &exact);
  EXPECT_FALSE(exact);
}

TEST(TfeventsWriterTest, TimesOfEventFilesComeBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double wall_time = 1e9 + static_cast<double>(random() % 1'000'000'000) +
                             static_cast<double>(random() % 1'000'000) / 1e6;
    const auto ns = UnixNsOfWallTime(wall_time);
    ASSERT_TRUE(ns.has_value());
    EXPECT_EQ(WallTimeOfUnixNs(*ns), wall_time);
  }
}

}  // namespace
}  // namespace tacho::client

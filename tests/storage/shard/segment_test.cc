#include "storage/shard/segment.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

using testing::HasSubstr;

constexpr LogPlace kPlace{.shard = 5, .epoch = 3, .number = 12};

Segment Example() {
  return {.place = kPlace,
          .nonce = 0xfedcba9876543210,
          .after = 100,
          .last = 102,
          .records = {"first", "", std::string("\0\xff", 2), std::string(100'000, 'x')}};
}

std::string Reason(const std::string& bytes) {
  return std::string(DecodeLogObject(bytes, kPlace).status().message());
}

// Changes bytes under the checksum, and mends the checksum.
std::string Forged(std::string bytes, size_t at, absl::string_view by) {
  bytes.replace(at, by.size(), by.data(), by.size());
  std::string crc;
  PutLe32(ExtendCrc32c(0, bytes.data() + 16, bytes.size() - 16), &crc);
  return bytes.replace(12, 4, crc);
}

std::string Le32(uint32_t value) {
  std::string bytes;
  PutLe32(value, &bytes);
  return bytes;
}

TEST(SegmentTest, IsReadAsItWasWritten) {
  const std::string bytes = EncodeSegment(Example());
  EXPECT_LT(bytes.size(), 1000u) << "compressed";
  const auto object = DecodeLogObject(bytes, kPlace);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<Segment>(*object), Example());
  EXPECT_TRUE(LooksLikeSegment(bytes));

  const auto empty = DecodeLogObject(EncodeSegment({.place = kPlace}), kPlace);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(std::get<Segment>(*empty), Segment{.place = kPlace});
}

TEST(SegmentTest, ASealIsReadAsItWasWritten) {
  const std::string bytes = EncodeSeal({.place = kPlace, .sealed_by = 4});
  EXPECT_EQ(bytes.size(), 44u);
  const auto object = DecodeLogObject(bytes, kPlace);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<Seal>(*object), (Seal{.place = kPlace, .sealed_by = 4}));
  EXPECT_FALSE(LooksLikeSegment(bytes));
}

TEST(SegmentTest, EveryFlippedBitAndEveryCutIsFound) {
  Segment small = Example();
  small.records.pop_back();
  for (const std::string& bytes : {EncodeSegment(small), EncodeSeal({.place = kPlace})}) {
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_FALSE(DecodeLogObject(damaged, kPlace).ok()) << "bit " << bit;
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeLogObject(bytes.substr(0, size), kPlace).ok()) << size << " bytes";
    }
    EXPECT_FALSE(DecodeLogObject(bytes + "x", kPlace).ok());
  }
}

TEST(SegmentTest, AnotherFormatIsNamedAndNotCalledDamage) {
  std::string bytes = EncodeSegment(Example());
  bytes[8] = 2;
  const auto object = DecodeLogObject(bytes, kPlace);
  EXPECT_EQ(object.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(object.status().message()),
              HasSubstr("v1/shards/0005/log/0000000000000003/0000000000000012: it has format 2"));
}

TEST(SegmentTest, ACopyUnderAnotherKeyIsRefused) {
  const auto object =
      DecodeLogObject(EncodeSegment(Example()), {.shard = 5, .epoch = 3, .number = 13});
  EXPECT_EQ(object.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(object.status().message()), HasSubstr("number 12 of epoch 3"));
}

TEST(SegmentTest, AHeaderThatLiesIsRefusedUnderARightChecksum) {
  const std::string bytes = EncodeSegment(Example());
  EXPECT_THAT(Reason(Forged(bytes, 60, Le32(3))), HasSubstr("do not fill"));
  EXPECT_THAT(Reason(Forged(bytes, 60, Le32(5))), HasSubstr("do not fill"));
  EXPECT_THAT(Reason(Forged(bytes, 60, Le32(0xffffffff))), HasSubstr("so many records"));
  EXPECT_THAT(Reason(Forged(bytes, 64, Le32(0xffffffff))), HasSubstr("larger than one may be"));
  EXPECT_THAT(Reason(Forged(bytes, 64, Le32(50))), HasSubstr("zstd frame"));
  EXPECT_THAT(Reason(Forged(bytes + "x", 64, "")), HasSubstr("zstd frame"));
}

}  // namespace
}  // namespace tacho::storage

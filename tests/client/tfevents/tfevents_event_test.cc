#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "client/tfevents/event.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::client {
namespace {

using namespace ::tacho::testing;  // NOLINT: the writer's functions are this test's vocabulary.

struct Decoded {
  bool ok = false;
  TfEvent event;
  std::vector<TfValue> values;
};

Decoded Decode(const std::string& payload) {
  Decoded out;
  out.ok = DecodeTfEvent(payload, &out.event,
                         [&out](const TfValue& value) { out.values.push_back(value); });
  return out;
}

uint64_t Bits(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TfValue DecodeTensor(const std::string& tensor) {
  static std::string payload;  // The views lie in it.
  payload = SummaryEvent(1, 1, TensorValue("t", tensor));
  const Decoded decoded = Decode(payload);
  EXPECT_TRUE(decoded.ok);
  return decoded.values.empty() ? TfValue() : decoded.values[0];
}

TEST(TfeventsEventTest, PublishedSimpleValueIsRead) {
  const Decoded decoded =
      Decode(absl::HexStringToBytes("09000000000000f03f10072a0d0a0b0a046c6f7373150000c03f"));
  ASSERT_TRUE(decoded.ok);
  EXPECT_EQ(decoded.event.wall_time, 1.0);
  EXPECT_EQ(decoded.event.step, 7);
  ASSERT_EQ(decoded.values.size(), 1u);
  EXPECT_EQ(decoded.values[0].kind, TfValue::Kind::kSimple);
  EXPECT_EQ(decoded.values[0].value, 1.5);
}

TEST(TfeventsEventTest, PublishedTensorScalarIsRead) {
  const std::string payload = absl::HexStringToBytes(
      "09000000000000f03f10072a230a210a046c6f7373420a080112002a040000c03f4a0d0a090a077363616c617273"
      "20"
      "01");
  const Decoded decoded = Decode(payload);
  ASSERT_TRUE(decoded.ok);
  ASSERT_EQ(decoded.values.size(), 1u);
  EXPECT_EQ(decoded.values[0].kind, TfValue::Kind::kTensor);
  EXPECT_EQ(decoded.values[0].tag, "loss");
  EXPECT_EQ(decoded.values[0].value, 1.5);
  EXPECT_EQ(decoded.values[0].plugin, "scalars");
  EXPECT_TRUE(decoded.values[0].scalar_class);
}

TEST(TfeventsEventTest, TimeAndStepMayStandBehindTheSummary) {
  const std::string payload = BytesField(5, BytesField(1, SimpleValue("a", 2))) +
                              VarintField(2, static_cast<uint64_t>(-3)) + DoubleField(1, 9.5);
  TfEvent event;
  int visits = 0;
  ASSERT_TRUE(DecodeTfEvent(payload, &event, [&](const TfValue&) {
    ++visits;
    EXPECT_EQ(event.wall_time, 9.5);
    EXPECT_EQ(event.step, -3);
  }));
  EXPECT_EQ(visits, 1);
}

TEST(TfeventsEventTest, EveryNumericTensorTypeIsReadFromListAndContent) {
  const std::string content_half("\x00\x3e", 2);  // 1.5
  EXPECT_EQ(DecodeTensor(VarintField(1, 1) + FloatField(5, 1.5f)).value, 1.5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 1) + BytesField(4, std::string("\0\0\xc0\x3f", 4))).value,
            1.5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 2) + DoubleField(6, 0.1)).value, 0.1);
  EXPECT_EQ(DecodeTensor(VarintField(1, 3) + VarintField(7, static_cast<uint64_t>(-5))).value, -5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 3) + BytesField(4, "\xfb\xff\xff\xff")).value, -5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 6) + BytesField(4, "\xfe")).value, -2);
  EXPECT_EQ(DecodeTensor(VarintField(1, 9) + VarintField(10, uint64_t{1} << 53)).value,
            9007199254740992.0);
  EXPECT_EQ(DecodeTensor(VarintField(1, 10) + VarintField(11, 1)).value, 1);
  EXPECT_EQ(DecodeTensor(VarintField(1, 14) + VarintField(13, 0x3fc0)).value, 1.5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 19) + VarintField(13, 0x3e00)).value, 1.5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 19) + BytesField(4, content_half)).value, 1.5);
  EXPECT_EQ(DecodeTensor(VarintField(1, 23) + VarintField(17, UINT64_MAX)).value,
            18446744073709551616.0);
  // Packed, as every modern writer has it.
  EXPECT_EQ(DecodeTensor(VarintField(1, 9) + BytesField(10, Varint(300))).value, 300);
}

TEST(TfeventsEventTest, TensorsThatAreNotOneNumberAreOther) {
  const auto kind = [](const std::string& tensor) { return DecodeTensor(tensor).kind; };
  constexpr TfValue::Kind kOther = TfValue::Kind::kOther;
  const std::string dim3 = BytesField(2, BytesField(2, VarintField(1, 3)));
  const std::string dim1 = BytesField(2, BytesField(2, VarintField(1, 1)));
  EXPECT_EQ(kind(VarintField(1, 7) + BytesField(8, "text")), kOther);
  EXPECT_EQ(kind(VarintField(1, 1) + dim3 + FloatField(5, 1)), kOther);
  EXPECT_EQ(kind(VarintField(1, 1) + FloatField(5, 1) + FloatField(5, 2)), kOther);
  EXPECT_EQ(kind(VarintField(1, 1) + BytesField(4, "\1\2\3")), kOther);
  EXPECT_EQ(kind(VarintField(1, 1) + BytesField(2, VarintField(3, 1)) + FloatField(5, 1)), kOther);
  EXPECT_EQ(kind(VarintField(1, 99) + FloatField(5, 1)), kOther);
  const TfValue one = DecodeTensor(VarintField(1, 1) + dim1 + FloatField(5, 1));
  EXPECT_EQ(one.kind, TfValue::Kind::kTensor);
  EXPECT_FALSE(one.rank_zero);
}

// TensorFlow's own reader takes a missing list for zeros.
TEST(TfeventsEventTest, TensorWithoutNumberIsZero) {
  const TfValue value = DecodeTensor(VarintField(1, 1));
  EXPECT_EQ(value.kind, TfValue::Kind::kTensor);
  EXPECT_EQ(Bits(value.value), 0u);
}

TEST(TfeventsEventTest, NanAndInfinityKeepTheirBits) {
  const auto widened = [](uint32_t bits) {
    const std::string payload = SummaryEvent(1, 1, BytesField(1, "x") + Fixed32Field(2, bits));
    return Bits(Decode(payload).values.at(0).value);
  };
  EXPECT_EQ(widened(0x7f800000), 0x7ff0000000000000u);
  EXPECT_EQ(widened(0xff800000), 0xfff0000000000000u);
  EXPECT_EQ(widened(0x7fc00000), 0x7ff8000000000000u);
  EXPECT_EQ(widened(0xffc12345), 0xfff82468a0000000u);
  EXPECT_EQ(widened(0x7f800001), 0x7ff0000020000000u) << "a signalling NaN stays one";
  EXPECT_EQ(widened(0x80000000), 0x8000000000000000u);
  EXPECT_EQ(widened(0x00000001), Bits(std::ldexp(1.0, -149)));
  EXPECT_EQ(Bits(DecodeTensor(VarintField(1, 2) + Fixed64Field(6, 0x7ff0000000000abc)).value),
            0x7ff0000000000abcu);
  EXPECT_EQ(Bits(DecodeTensor(VarintField(1, 19) + VarintField(13, 0xfc00)).value),
            0xfff0000000000000u);
  EXPECT_EQ(DecodeTensor(VarintField(1, 19) + VarintField(13, 0x0001)).value, std::ldexp(1, -24));
  EXPECT_EQ(DecodeTensor(VarintField(1, 19) + VarintField(13, 0xfbff)).value, -65504);
}

TEST(TfeventsEventTest, SessionStartIsToldFromOtherSessionLogs) {
  EXPECT_TRUE(Decode(BytesField(7, VarintField(1, 1))).event.session_start);
  EXPECT_FALSE(Decode(BytesField(7, VarintField(1, 3))).event.session_start);
}

TEST(TfeventsEventTest, EveryTruncationIsRefusedOrAShorterMessage) {
  const std::string payload =
      SummaryEvent(1, 7, TensorValue("loss", VarintField(1, 1) + FloatField(5, 1.5f), "scalars"));
  for (size_t size = 0; size < payload.size(); ++size) {
    const Decoded decoded = Decode(payload.substr(0, size));
    EXPECT_TRUE(decoded.values.empty()) << size;
  }
}

TEST(TfeventsEventTest, MalformedBytesAreRefused) {
  EXPECT_FALSE(Decode(std::string(11, '\xff')).ok) << "a varint that does not end";
  EXPECT_FALSE(Decode(std::string(1, '\0')).ok) << "field number 0";
  EXPECT_FALSE(Decode(BytesField(5, BytesField(1, "\x0a\x7f"))).ok) << "longer than the message";
  EXPECT_FALSE(Decode("\x0b").ok) << "a group";
  EXPECT_TRUE(Decode("").ok);
}

TEST(TfeventsEventTest, WallTimeBecomesNanosecondsBySecondsAndFraction) {
  EXPECT_EQ(UnixNsOfWallTime(0.0), 0);
  EXPECT_EQ(UnixNsOfWallTime(1.5), 1'500'000'000);
  // The double nearest to …0.123456 is 1599759586.1234560013; the product in one step would give
  // a multiple of 256.
  EXPECT_EQ(UnixNsOfWallTime(1599759586.123456), 1599759586123456001);
  EXPECT_EQ(UnixNsOfWallTime(1e-9), 1);
  EXPECT_EQ(UnixNsOfWallTime(std::nextafter(2.0, 0.0)), 2'000'000'000);
  EXPECT_EQ(UnixNsOfWallTime(9223372035.5), 9223372035500000000);
  EXPECT_EQ(UnixNsOfWallTime(9223372036.0), std::nullopt);
  EXPECT_EQ(UnixNsOfWallTime(-1e-9), std::nullopt);
  EXPECT_EQ(UnixNsOfWallTime(std::numeric_limits<double>::infinity()), std::nullopt);
  EXPECT_EQ(UnixNsOfWallTime(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
}

}  // namespace
}  // namespace tacho::client

// What goes in comes out, bit for bit, whatever it is; what was never written is refused.
#include "storage/column_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/series.h"

namespace tacho::storage {
namespace {

using Doubles = std::vector<double>;

std::vector<uint64_t> Bits(const Doubles& values) {
  std::vector<uint64_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(double));
  return bits;
}

size_t RoundTrip(const Doubles& values) {
  std::string bytes;
  ColumnCodec::EncodeValues(values, &bytes);
  Doubles decoded;
  const absl::Status status = ColumnCodec::DecodeValues(bytes, values.size(), &decoded);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Bits(decoded), Bits(values));
  return bytes.size();
}

Doubles Generate(size_t count, const std::function<double(size_t)>& value) {
  Doubles values(count);
  for (size_t i = 0; i < count; ++i) values[i] = value(i);
  return values;
}

TEST(ValueCodecTest, KeepsEveryBitOfUnusualValues) {
  const double payload = std::bit_cast<double>(uint64_t{0x7ff80000deadbeef});
  const double stale = std::bit_cast<double>(kStaleMarkerBits);
  const double negative_nan = std::bit_cast<double>(uint64_t{0xfff8000000000001});
  RoundTrip({});
  RoundTrip({payload});
  RoundTrip({0.0, -0.0, 0.0, -0.0});
  RoundTrip({1, 2, payload, 3, negative_nan, stale, 4, INFINITY, -INFINITY, 5});
  RoundTrip({std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::denorm_min(),
             std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(), 1e-310});
  RoundTrip({9007199254740992.0, 9007199254740993.0, -9007199254740992.0, 1e300, 0.1, 0.2});
}

TEST(ValueCodecTest, RandomBitsRoundTripAtEveryLength) {
  std::mt19937_64 random(1);
  for (size_t count = 1; count < 300; ++count) {
    RoundTrip(Generate(count, [&](size_t) { return std::bit_cast<double>(random()); }));
  }
}

TEST(ValueCodecTest, ConstantColumnsTakeNineBytesOrLess) {
  EXPECT_EQ(RoundTrip(Doubles(1000, 0)), 4u);
  EXPECT_EQ(RoundTrip(Doubles(1000, 0.25)), 4u);
  EXPECT_EQ(RoundTrip(Doubles(1000, -0.0)), 9u);
  EXPECT_EQ(RoundTrip(Doubles(1000, M_PI)), 9u);
  EXPECT_EQ(RoundTrip(Doubles(1000, std::bit_cast<double>(kStaleMarkerBits))), 9u);
}

TEST(ValueCodecTest, IntegersDecimalsAndFloatsAreSmall) {
  std::mt19937_64 random(2);
  const auto integers =
      Generate(1024, [&](size_t) { return static_cast<double>(random() % 1000); });
  EXPECT_LT(RoundTrip(integers), 1024 * 1.4);
  const auto decimals =
      Generate(1024, [&](size_t) { return static_cast<double>(random() % 10000) / 100; });
  EXPECT_LT(RoundTrip(decimals), 1024 * 1.9);
  const auto floats = Generate(1024, [&](size_t i) {
    return static_cast<double>(2.5F + std::sin(static_cast<float>(i) / 50));
  });
  EXPECT_LT(RoundTrip(floats), 1024 * 4.2);
}

// In real data a few values of a column never fit; giving up the column for them doubles its size.
TEST(ValueCodecTest, AFewExceptionsDoNotSpoilADecimalColumn) {
  std::mt19937_64 random(6);
  auto values = Generate(1024, [&](size_t) { return static_cast<double>(random() % 1000) / 10; });
  const size_t without = RoundTrip(values);
  values[3] = M_PI;
  values[500] = NAN;
  values[1023] = -0.0;
  EXPECT_LT(RoundTrip(values), without + 100);
}

TEST(ValueCodecTest, DamagedBytesAreRefusedOrDecodeToTheRightCount) {
  std::mt19937_64 random(3);
  const std::vector<Doubles> columns = {
      Generate(200, [&](size_t) { return std::bit_cast<double>(random()); }),
      Generate(200, [](size_t i) { return static_cast<double>(i % 7) / 10; }),
      Generate(200, [](size_t i) { return std::sin(static_cast<float>(i)); }), Doubles(200, 1.5)};
  for (const Doubles& column : columns) {
    std::string bytes;
    ColumnCodec::EncodeValues(column, &bytes);
    Doubles decoded;
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(ColumnCodec::DecodeValues(bytes.substr(0, length), 200, &decoded).ok())
          << "cut to " << length;
    }
    EXPECT_FALSE(ColumnCodec::DecodeValues(bytes + '\0', 200, &decoded).ok());
    for (int i = 0; i < 2000; ++i) {
      std::string broken = bytes;
      broken[random() % broken.size()] = static_cast<char>(random());
      if (ColumnCodec::DecodeValues(broken, 200, &decoded).ok()) {
        EXPECT_EQ(decoded.size(), 200u);
      }
    }
  }
}

size_t RoundTripIntegers(const std::vector<int64_t>& integers) {
  std::string bytes;
  ColumnCodec::EncodeIntegers(integers, &bytes);
  std::vector<int64_t> decoded;
  const absl::Status status = ColumnCodec::DecodeIntegers(bytes, integers.size(), &decoded);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(decoded, integers);
  return bytes.size();
}

TEST(IntegerCodecTest, EveryIntegerRoundTrips) {
  std::mt19937_64 random(4);
  RoundTripIntegers({});
  RoundTripIntegers({INT64_MIN});
  RoundTripIntegers({INT64_MIN, INT64_MAX, INT64_MIN, 0, -1, INT64_MAX});
  RoundTripIntegers({0, INT64_MIN, 0, INT64_MIN});
  for (size_t count = 1; count < 400; ++count) {
    std::vector<int64_t> integers(count);
    for (int64_t& integer : integers) integer = static_cast<int64_t>(random() >> (random() % 64));
    RoundTripIntegers(integers);
  }
}

TEST(IntegerCodecTest, ARegularCadenceCostsNextToNothing) {
  std::vector<int64_t> times;
  for (int64_t i = 0; i < 10'000; ++i)
    times.push_back(1'700'000'000'000'000'000 + i * 1'000'000'000);
  EXPECT_LT(RoundTripIntegers(times), 20u);
}

TEST(IntegerCodecTest, ACommonDivisorIsFound) {
  std::mt19937_64 random(5);
  std::vector<int64_t> times = {1'700'000'000'000'000'000};
  for (int i = 1; i < 1024; ++i) {
    times.push_back(times.back() + static_cast<int64_t>(1990 + random() % 20) * 1'000'000);
  }
  EXPECT_LT(RoundTripIntegers(times), 1024u) << "five bits a millisecond time, not thirty";
}

TEST(ColumnStatsTest, CountsNonFiniteAndLeavesStaleMarkersOut) {
  const double stale = std::bit_cast<double>(kStaleMarkerBits);
  const Doubles values = {stale, 3, NAN, -1, INFINITY, 2, stale};
  const ColumnStats stats = ColumnStats::Of(values);
  EXPECT_EQ(stats.count, 5u);
  EXPECT_EQ(stats.non_finite, 2u);
  EXPECT_EQ(stats.min, -1);
  EXPECT_EQ(stats.max, 3);
  EXPECT_EQ(stats.sum, 4);
  EXPECT_EQ(stats.first, 3);
  EXPECT_EQ(stats.last, 2);
}

}  // namespace
}  // namespace tacho::storage

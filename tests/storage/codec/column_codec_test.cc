// What goes in comes out, bit for bit, whatever it is; what was never written is refused.
#include "storage/codec/column_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/model/series.h"

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
  const double stale = StaleMarker();
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
  EXPECT_EQ(RoundTrip(Doubles(1000, StaleMarker())), 9u);
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

// 3 * 0.1 is the neighbour of 0.3; below 0 neighbours' bits go the other way.
TEST(ValueCodecTest, MultiplesOfADecimalAreNearQuotientsOnEitherSideOfZero) {
  std::mt19937_64 random(8);
  for (const int64_t least : {0, -500, -1000}) {
    const auto multiples = Generate(1024, [&](size_t) {
      return static_cast<double>(static_cast<int64_t>(random() % 1000) + least) * 0.1;
    });
    EXPECT_LT(RoundTrip(multiples), 1024 * 2.0);
  }
}

// The encoder makes no such integers, but the format has them.
TEST(ValueCodecTest, QuotientsOfIntegersThatTakeAllBitsOfADoubleAreRead) {
  const std::vector<int64_t> integers = {(int64_t{1} << 53) + 2, -(int64_t{1} << 52) - 1, INT64_MAX,
                                         INT64_MIN, 3};
  std::string bytes = {4, 10};  // Quotients by 10.
  ColumnCodec::EncodeIntegers(integers, &bytes);
  Doubles decoded;
  ASSERT_TRUE(ColumnCodec::DecodeValues(bytes, integers.size(), &decoded).ok());
  for (size_t i = 0; i < integers.size(); ++i) {
    EXPECT_EQ(decoded[i], static_cast<double>(integers[i]) / 10);
  }
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

// Kinds of columns that real data has, or that try the codec hardest.
std::vector<std::function<double(size_t)>> Kinds(std::mt19937_64* random) {
  const auto bits = [random] { return (*random)(); };
  const auto uniform = [random] { return static_cast<double>((*random)() >> 11) * 0x1p-53; };
  return {
      [=](size_t) { return std::bit_cast<double>(bits()); },
      [=](size_t) { return std::bit_cast<double>(bits() & 0x000fffffffffffff); },
      [=](size_t) { return std::bit_cast<double>(0x7ff0000000000000 | bits() >> 20); },
      [=](size_t) { return uniform(); },
      [=](size_t i) { return bits() % 3 == 0 ? uniform() : static_cast<double>(i); },
      [=](size_t) { return static_cast<double>(static_cast<int64_t>(bits())); },
      [=](size_t i) { return static_cast<double>(i * 4096 + bits() % 3); },
      [=](size_t) { return static_cast<double>(bits() % 100000) / 1000; },
      [=](size_t) { return static_cast<double>(bits() % 1000) / 100 + 0.1; },
      [=](size_t) { return static_cast<double>(bits() % 100000) / 7 / 60; },
      [=](size_t) { return static_cast<double>(static_cast<float>(uniform() - 0.5)); },
      [=](size_t) { return static_cast<double>(static_cast<float>(bits() % 512) / 512); },
      [=](size_t) { return static_cast<double>(static_cast<float>(bits() % 9999) / 10000); },
      [=](size_t) { return std::sqrt(static_cast<double>(bits() % 7)); },
      [=](size_t) { return bits() % 2 == 0 ? 0.0 : -0.0; },
      [=](size_t i) { return i == 0 ? 1.0 : 2.0; },
      [=](size_t i) { return i % 5 == 0 ? uniform() : StaleMarker(); },
      [=](size_t) { return bits() % 4 == 0 ? NAN : static_cast<double>(bits() % 50); },
      [=](size_t) {
        return bits() % 9 == 0 ? M_PI * uniform() : 0.25 * static_cast<double>(bits() % 9);
      },
      [=](size_t i) { return 1e300 * std::pow(0.5, static_cast<double>(i % 2000)); },
  };
}

TEST(ValueCodecTest, AnyValuesRoundTripAtAnyLengthInEveryEncoding) {
  std::mt19937_64 random(7);
  std::set<uint8_t> encodings;
  const auto round_trip = [&](const Doubles& values) {
    const size_t size = RoundTrip(values);
    EXPECT_LE(size, 1 + values.size() * sizeof(double) + (values.size() / 8) + 16);
    std::string bytes;
    ColumnCodec::EncodeValues(values, &bytes);
    if (!bytes.empty()) encodings.insert(static_cast<uint8_t>(bytes[0]));
  };
  for (const auto& kind : Kinds(&random)) {
    for (size_t count = 0; count < 80; ++count) round_trip(Generate(count, kind));
    for (const size_t count : {191U, 192U, 193U, 255U, 256U, 257U, 1023U, 1024U, 5000U}) {
      round_trip(Generate(count, kind));
    }
  }
  // Columns of several kinds, one after the other.
  const auto kinds = Kinds(&random);
  for (int i = 0; i < 200; ++i) {
    Doubles values;
    while (values.size() < 1 + random() % 2000) {
      const Doubles part = Generate(1 + random() % 300, kinds[random() % kinds.size()]);
      values.insert(values.end(), part.begin(), part.end());
    }
    round_trip(values);
  }
  // Raw, constant, gaps, ordered doubles and floats, quotients (of floats, near, with exceptions),
  // dictionary.
  for (const int head : {0, 1, 2, 3, 3 + 8, 4, 4 + 8, 4 + 16, 4 + 32, 5}) {
    EXPECT_EQ(encodings.count(static_cast<uint8_t>(head)), 1u) << "encoding " << head;
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

TEST(IntegerCodecTest, AnyIntegersRoundTripInEveryForm) {
  std::mt19937_64 random(8);
  std::set<uint8_t> heads;
  const std::vector<int64_t> extremes = {INT64_MIN, INT64_MIN + 1, -1,        0,
                                         1,         INT64_MAX - 1, INT64_MAX, int64_t{1} << 62};
  for (int i = 0; i < 3000; ++i) {
    std::vector<int64_t> integers(1 + random() % (i % 100 == 0 ? 5000 : 400));
    const uint64_t step = (random() >> (random() % 64)) | 1;
    const uint64_t noise = (random() >> (random() % 64)) | 1;
    const uint64_t odd = random() % 3;
    uint64_t at = random();
    for (int64_t& integer : integers) {
      at += step + step * (random() % noise) * odd;
      integer = static_cast<int64_t>(at);
      if (i % 7 == 0) integer = static_cast<int64_t>(random() % noise * step);
      if (i % 5 == 0 && random() % 50 == 0) integer = extremes[random() % extremes.size()];
    }
    RoundTripIntegers(integers);
    std::string bytes;
    ColumnCodec::EncodeIntegers(integers, &bytes);
    heads.insert(static_cast<uint8_t>(bytes[0]));
  }
  // Each order, folded or not, with and without a divisor, in each form.
  std::set<int> seen;
  for (const uint8_t head : heads) {
    for (const int part :
         {head & 3, 10 + (head >> 2 & 1), 20 + (head >> 3 & 1), 30 + (head >> 4)}) {
      seen.insert(part);
    }
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2, 10, 11, 20, 21, 30, 31, 32}));
}

TEST(IntegerCodecTest, NumbersOfEveryWidthRoundTripPacked) {
  std::mt19937_64 random(9);
  for (unsigned width = 1; width <= 64; ++width) {
    for (const size_t count : {9U, 31U, 300U}) {
      std::vector<int64_t> integers(count);
      for (int64_t& integer : integers) integer = static_cast<int64_t>(random() >> (64 - width));
      RoundTripIntegers(integers);
    }
  }
}

// A table has 2^5 to 2^10 states, by how many numbers there are; up to 2^7 are read in another way,
// and so are fewer than 256 numbers.
TEST(IntegerCodecTest, NumbersInTablesOfEverySizeRoundTrip) {
  std::mt19937_64 random(10);
  const auto counts = {100U, 199U, 255U, 256U, 257U, 258U, 259U, 511U, 1023U, 2047U, 4095U, 9001U};
  for (const size_t count : counts) {
    for (const unsigned spread : {5U, 20U, 60U}) {
      std::vector<int64_t> integers(count);
      for (int64_t& integer : integers) {
        integer = static_cast<int64_t>(random() >> (63 - random() % spread));
      }
      std::string bytes;
      ColumnCodec::EncodeIntegers(integers, &bytes);
      EXPECT_EQ(bytes[0] >> 4, 2) << "not in buckets";
      RoundTripIntegers(integers);
    }
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
  const double stale = StaleMarker();
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

// Columns of open rows: every bit comes back, and what fleets record becomes small.
#include "storage/codec/open_codec.h"

#include <bit>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

const double kStale = StaleMarker();

// Size of the encoded column; fails the test if it does not come back.
size_t RoundTrip(const std::vector<double>& values) {
  std::string bytes = "before";
  OpenEncoder().EncodeValues(values, &bytes);
  const size_t size = bytes.size() - 6;
  bytes.append(kOpenPadding, '\xa5');
  std::vector<double> back(values.size(), 77);
  DecodeOpenValues(absl::string_view(bytes).substr(6, size), back);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(back[i]), std::bit_cast<uint64_t>(values[i]))
        << i << " of " << values.size();
  }
  return size;
}

size_t RoundTrip(const std::vector<int64_t>& integers) {
  std::string bytes;
  OpenEncoder().EncodeIntegers(integers, &bytes);
  const size_t size = bytes.size();
  bytes.append(kOpenPadding, '\xa5');
  std::vector<int64_t> back(integers.size(), 77);
  DecodeOpenIntegers(absl::string_view(bytes).substr(0, size), back);
  EXPECT_EQ(back, integers);
  return size;
}

TEST(OpenCodecTest, OddValuesComeBackBitForBit) {
  const double payload = std::bit_cast<double>(uint64_t{0x7ff4000000000123});  // Signalling.
  const std::vector<double> odd = {0,    -0.0,  1e-310, -INFINITY, payload, kStale,
                                   0.1,  1e300, 0x1p53, -1,        NAN,     9007199254740991,
                                   1e-7, 1e22};
  RoundTrip(odd);
  for (const double value : odd) {
    RoundTrip(std::vector<double>{value});
    RoundTrip(std::vector<double>(20, value));
    for (const double other : odd) {
      RoundTrip(std::vector<double>{value, other});
      RoundTrip(std::vector<double>{other, value, value, other, 0.25});
    }
  }
}

TEST(OpenCodecTest, AnyBitsOfAnyNumberComeBack) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<double> values(1 + random() % 70);
    const uint64_t kind = random() % 6;
    const uint64_t keep = random() % 64;
    for (double& value : values) {
      const uint64_t bits = random();
      if (kind == 0) value = std::bit_cast<double>(bits);
      if (kind == 1) value = std::bit_cast<double>(uint64_t{0x4045000000000000} ^ bits >> keep);
      if (kind == 2) value = static_cast<double>(static_cast<int64_t>(bits) >> keep) / 1000;
      if (kind == 3) value = static_cast<float>(static_cast<double>(bits));
      if (kind == 4) value = bits % 7 == 0 ? 1.25 : kStale;
      if (kind == 5) value = static_cast<double>(bits % 5);
    }
    RoundTrip(values);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(OpenCodecTest, AnyIntegersComeBack) {
  RoundTrip(std::vector<int64_t>{INT64_MIN, INT64_MAX, 0, INT64_MIN, INT64_MIN});
  RoundTrip(std::vector<int64_t>{kNoStep});
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::vector<int64_t> integers(1 + random() % 70);
    const uint64_t shift = random() % 64;
    const bool ascending = random() % 2 == 0;
    uint64_t sum = random();
    for (int64_t& integer : integers) {
      sum = (ascending ? sum : 0) + (random() >> shift);
      integer = static_cast<int64_t>(sum);
    }
    RoundTrip(integers);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(OpenCodecTest, UsualColumnsAreSmall) {
  std::vector<double> percent, counter, floats, sparse;
  std::vector<int64_t> times;
  std::mt19937_64 random(3);
  double total = 1e12;
  for (int i = 0; i < 64; ++i) {
    percent.push_back(std::round(9000 + static_cast<double>(random() % 200)) / 100);
    total += 1e9 + static_cast<double>(random() % 10'000'000);
    counter.push_back(total);
    floats.push_back(static_cast<float>(2 + static_cast<double>(random() % 1000) / 7e3));
    sparse.push_back(i % 16 == 5 ? 0.5 + i : kStale);
    times.push_back(1'700'000'000'000'000'000 + i * 1'000'000'000LL +
                    static_cast<int64_t>(random() % 2'000'000));
  }
  EXPECT_LE(RoundTrip(std::vector<double>(64, 95.0 * (1 << 30))), 8u);
  EXPECT_LE(RoundTrip(std::vector<double>(64, 1 / 3.0)), 9u);
  EXPECT_LE(RoundTrip(percent), 64u * 9 / 8 + 8);
  EXPECT_LE(RoundTrip(counter), 64u * 24 / 8 + 16);
  EXPECT_LE(RoundTrip(floats), 64u * 22 / 8 + 14) << "the low bits of a float in a double are 0";
  EXPECT_LE(RoundTrip(sparse), 20u) << "a bit a row without a value";
  EXPECT_LE(RoundTrip(times), 64u * 22 / 8 + 20);
}

}  // namespace
}  // namespace tacho::storage

#include "tests/format/statistics.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/format/value_column.h"

namespace format_page {
namespace {

uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }
double ValueOf(uint64_t bits) { return std::bit_cast<double>(bits); }

// Where a number is, as the first byte has it for the first and for the last value.
enum Place : unsigned { kWritten = 0, kIsMinimum = 1, kIsMaximum = 2 };

struct Shape {
  unsigned kind = 0;
  bool one_value = false;  // The maximum is the minimum.
  unsigned first = 0;
  unsigned last = 0;
};

template <typename ReadFirst, typename ReadNext>
void ReadInOrder(const Shape& shape, ReadFirst read_minimum, ReadNext read, Statistics* stats) {
  const double min = read_minimum();
  const double max = shape.one_value ? min : read();
  const auto place = [&](unsigned where) {
    if (where == kIsMinimum) return BitsOf(min);
    return where == kIsMaximum ? BitsOf(max) : BitsOf(read());
  };
  stats->min = min;
  stats->max = max;
  stats->first = place(shape.first);
  stats->last = place(shape.last);
}

void ReadDecimals(Bytes* bytes, const Shape& shape, uint64_t finite, Statistics* stats) {
  const unsigned exponent = bytes->Byte();
  if (exponent > 15) bytes->Fail("decimals beyond 10^15");
  double power = 1;
  for (unsigned i = 0; i < exponent; ++i) power *= 10;
  const auto quotient = [power](uint64_t n) {
    return static_cast<double>(static_cast<int64_t>(n)) / power;
  };
  uint64_t min = 0;
  uint64_t max = 0;
  const auto read_minimum = [&] {
    max = min = static_cast<uint64_t>(bytes->Zigzag());
    return quotient(min);
  };
  bool is_maximum = !shape.one_value;  // The next number that is read.
  const auto read = [&] {
    const uint64_t number = min + bytes->Varint();
    if (is_maximum) max = number;
    is_maximum = false;
    return quotient(number);
  };
  ReadInOrder(shape, read_minimum, read, stats);
  const uint64_t expected = finite * min + finite * (max - min) / 2;
  const uint64_t sum = static_cast<uint64_t>(bytes->Zigzag()) + expected;
  stats->sum = ValueOf(BitsOf(quotient(sum)) + static_cast<uint64_t>(bytes->Zigzag()));
}

}  // namespace

std::optional<Statistics> ReadStatistics(Bytes* bytes, uint64_t rows) {
  const uint8_t head = bytes->Byte();
  const Shape shape = {head & 3u, (head & 0x80) != 0, head >> 3 & 3u, head >> 5 & 3u};
  if (shape.kind == 3) {
    bytes->Met("statistics: none");
    if (head != 3) bytes->Fail("statistics that are none, but with flags");
    if (rows > 8) bytes->Fail("more than 8 rows without statistics");
    return std::nullopt;
  }
  if (rows <= 8) bytes->Fail("statistics of at most 8 rows");
  if (shape.first > kIsMaximum || shape.last > kIsMaximum) bytes->Fail("unknown statistics");
  Statistics stats;
  if ((head & 4) != 0) {
    bytes->Met("statistics: counts");
    stats.stale = bytes->Varint();
    stats.not_finite = bytes->Varint();
  }
  if (stats.stale > rows || stats.not_finite > rows - stats.stale) {
    bytes->Fail("statistics of more values than rows");
  }
  if (!bytes->ok()) return std::nullopt;
  if (shape.kind == 2) {
    bytes->Met("statistics: decimals");
    ReadDecimals(bytes, shape, rows - stats.stale - stats.not_finite, &stats);
    return stats;
  }
  const bool floats = shape.kind == 1;
  bytes->Met(floats ? "statistics: floats" : "statistics: doubles");
  const auto read = [&] {
    if (!floats) return ValueOf(bytes->Little(8));
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bytes->Little(4))));
  };
  ReadInOrder(shape, read, read, &stats);
  stats.sum = ValueOf(bytes->Little(8));
  return stats;
}

Statistics StatisticsOf(const std::vector<uint64_t>& values) {
  Statistics stats;
  stats.min = std::numeric_limits<double>::infinity();
  stats.max = -stats.min;
  bool any = false;
  for (const uint64_t bits : values) {
    if (bits == kStaleMarker) {
      ++stats.stale;
      continue;
    }
    if (!any) stats.first = bits;
    any = true;
    stats.last = bits;
    const double value = ValueOf(bits);
    if (!std::isfinite(value)) {
      ++stats.not_finite;
      continue;
    }
    if (value < stats.min) stats.min = value;
    if (value > stats.max) stats.max = value;
    stats.sum += value;
  }
  return stats;
}

const char* Difference(const Statistics& stored, const Statistics& computed) {
  if (stored.stale != computed.stale) return "rows without a value";
  if (stored.not_finite != computed.not_finite) return "NaN and infinite values";
  if (BitsOf(stored.min) != BitsOf(computed.min)) return "minimum";
  if (BitsOf(stored.max) != BitsOf(computed.max)) return "maximum";
  if (BitsOf(stored.sum) != BitsOf(computed.sum)) return "sum";
  if (stored.first != computed.first) return "first";
  if (stored.last != computed.last) return "last";
  return "";
}

}  // namespace format_page

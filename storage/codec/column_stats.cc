// Statistics of a column: counted in one pass, and written in the fewest bytes that give back every
// bit, as decimals where they are decimals.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/column_codec.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

enum Form : uint8_t { kDoubles = 0, kFloats = 1, kDecimals = 2, kNone = 3 };
constexpr uint8_t kFormMask = 0x03;
constexpr uint8_t kCountsFollow = 0x04;
constexpr unsigned kFirstShift = 3;
constexpr unsigned kLastShift = 5;
enum Same : uint8_t { kWritten = 0, kIsMin = 1, kIsMax = 2, kSameMask = 3 };
constexpr uint8_t kMaxIsMin = 0x80;

// Powers of ten that a double holds exactly.
constexpr std::array<double, 16> kPowersOfTen = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// All set: NaN or infinite.
constexpr uint64_t kExponentBits = 0x7ff0000000000000;

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

Same SameAs(double value, const ColumnStats& stats) {
  if (Bits(value) == Bits(stats.min)) return kIsMin;
  return Bits(value) == Bits(stats.max) ? kIsMax : kWritten;
}

// The numbers that are written besides the sum.
struct Numbers {
  std::array<double, 4> values;
  size_t count = 0;
};

Numbers Written(const ColumnStats& stats, uint8_t form) {
  Numbers out;
  const auto add = [&](double value) { out.values[out.count++] = value; };
  add(stats.min);
  if ((form & kMaxIsMin) == 0) add(stats.max);
  if (((form >> kFirstShift) & kSameMask) == kWritten) add(stats.first);
  if (((form >> kLastShift) & kSameMask) == kWritten) add(stats.last);
  return out;
}

// The integer that `value` times the power is, if dividing it again gives the very same bits.
std::optional<int64_t> AsDecimal(double value, double power) {
  const double scaled = value * power;
  constexpr double kLargestExact = 9007199254740992.0;           // 2^53
  if (!(std::abs(scaled) < kLargestExact)) return std::nullopt;  // NaN and infinity end here too.
  const double rounded = std::nearbyint(scaled);
  const auto integer = static_cast<int64_t>(rounded);
  // An integer has no -0, so it ends here too.
  if (Bits(static_cast<double>(integer) / power) != Bits(value)) return std::nullopt;
  return integer;
}

// The sum that there would be if the values lay evenly between min and max. S is stored as the
// difference from it.
uint64_t ExpectedSum(uint64_t finite, uint64_t min, uint64_t range) {
  return finite * min + finite * range / 2;
}

// False if the numbers are no decimals.
bool PutDecimals(const ColumnStats& stats, const Numbers& numbers, std::string* out) {
  std::array<uint64_t, 4> integers = {};
  unsigned e = 0;
  for (size_t i = 0; i < numbers.count;) {
    const auto integer = AsDecimal(numbers.values[i], kPowersOfTen[e]);
    if (integer) {
      integers[i++] = static_cast<uint64_t>(*integer);
    } else {
      if (++e == kPowersOfTen.size()) return false;
      i = 0;
    }
  }
  const double scaled = stats.sum * kPowersOfTen[e];
  if (!(std::abs(scaled) < 0x1p62)) return false;
  const auto sum = static_cast<int64_t>(std::nearbyint(scaled));
  out->push_back(static_cast<char>(e));
  PutVarint(ZigZag(static_cast<int64_t>(integers[0])), out);
  for (size_t i = 1; i < numbers.count; ++i) PutVarint(integers[i] - integers[0], out);
  const bool has_max = Bits(stats.max) != Bits(stats.min);
  const uint64_t expected = ExpectedSum(stats.count - stats.non_finite, integers[0],
                                        has_max ? integers[1] - integers[0] : 0);
  PutVarint(ZigZag(static_cast<int64_t>(static_cast<uint64_t>(sum) - expected)), out);
  const double decimal_sum = static_cast<double>(sum) / kPowersOfTen[e];
  PutVarint(ZigZag(static_cast<int64_t>(Bits(stats.sum) - Bits(decimal_sum))), out);
  return true;
}

bool AreFloats(const Numbers& numbers) {
  return std::all_of(numbers.values.begin(), numbers.values.begin() + numbers.count, [](double v) {
    return Bits(static_cast<double>(static_cast<float>(v))) == Bits(v);
  });
}

// min, max, first and last where they are written, and the sum.
void ReadNumbers(uint8_t form, uint64_t finite, ByteReader* in, ColumnStats* stats) {
  const uint8_t e = (form & kFormMask) == kDecimals ? in->Byte() & 0x0f : 0;
  std::optional<uint64_t> min;
  uint64_t range = 0;
  const auto read = [&]() -> double {
    switch (form & kFormMask) {
      case kDoubles:
        return std::bit_cast<double>(in->Le64());
      case kFloats:
        return static_cast<double>(std::bit_cast<float>(in->Le32()));
      default:
        break;
    }
    if (!min) {
      min = static_cast<uint64_t>(UnZigZag(in->Varint()));
      range = 0;
    } else {
      range = in->Varint();
    }
    return static_cast<double>(static_cast<int64_t>(*min + range)) / kPowersOfTen[e];
  };
  stats->min = read();
  stats->max = (form & kMaxIsMin) != 0 ? stats->min : read();
  const uint64_t max_range = range;
  const auto same_or_read = [&](unsigned same) {
    return same == kIsMin ? stats->min : same == kIsMax ? stats->max : read();
  };
  stats->first = same_or_read((form >> kFirstShift) & kSameMask);
  stats->last = same_or_read((form >> kLastShift) & kSameMask);
  if ((form & kFormMask) != kDecimals) {
    stats->sum = std::bit_cast<double>(in->Le64());
    return;
  }
  const uint64_t sum = ExpectedSum(finite, min.value_or(0), max_range) +
                       static_cast<uint64_t>(UnZigZag(in->Varint()));
  const double decimal_sum = static_cast<double>(static_cast<int64_t>(sum)) / kPowersOfTen[e];
  stats->sum =
      std::bit_cast<double>(Bits(decimal_sum) + static_cast<uint64_t>(UnZigZag(in->Varint())));
}

}  // namespace

ColumnStats ColumnStats::Of(std::span<const double> values) {
  ColumnStats stats;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  size_t absent = 0;
  size_t non_finite = 0;
  for (const double value : values) {
    const uint64_t bits = Bits(value);
    if ((bits & kExponentBits) == kExponentBits) {
      ++(bits == kStaleMarkerBits ? absent : non_finite);
      continue;
    }
    min = value < min ? value : min;
    max = value > max ? value : max;
    sum += value;
  }
  stats.count = static_cast<uint32_t>(values.size() - absent);
  stats.non_finite = static_cast<uint32_t>(non_finite);
  stats.min = min;
  stats.max = max;
  stats.sum = sum;
  if (stats.count == 0) return stats;
  size_t first = 0;
  while (Bits(values[first]) == kStaleMarkerBits) ++first;
  size_t last = values.size() - 1;
  while (Bits(values[last]) == kStaleMarkerBits) --last;
  stats.first = values[first];
  stats.last = values[last];
  return stats;
}

void EncodeStats(const ColumnStats& stats, uint32_t rows, std::string* out) {
  TACHO_CHECK(stats.count > 0 && stats.count <= rows && stats.non_finite <= stats.count);
  if (rows <= kRowsWithoutStats) {
    out->push_back(static_cast<char>(kNone));
    return;
  }
  const bool counts = stats.count != rows || stats.non_finite != 0;
  const uint8_t form = static_cast<uint8_t>(
      (counts ? kCountsFollow : 0) | (Bits(stats.max) == Bits(stats.min) ? kMaxIsMin : 0) |
      (SameAs(stats.first, stats) << kFirstShift) | (SameAs(stats.last, stats) << kLastShift));
  const size_t at = out->size();
  out->push_back(static_cast<char>(form));
  if (counts) {
    PutVarint(rows - stats.count, out);
    PutVarint(stats.non_finite, out);
  }
  const Numbers numbers = Written(stats, form);
  const bool floats = AreFloats(numbers);
  std::string decimals;
  const size_t plain_size = numbers.count * (floats ? 4 : 8) + 8;
  if (PutDecimals(stats, numbers, &decimals) && decimals.size() <= plain_size) {
    (*out)[at] = static_cast<char>(form | kDecimals);
    out->append(decimals);
    return;
  }
  (*out)[at] = static_cast<char>(form | (floats ? kFloats : kDoubles));
  for (size_t i = 0; i < numbers.count; ++i) {
    if (floats) {
      PutLe32(std::bit_cast<uint32_t>(static_cast<float>(numbers.values[i])), out);
    } else {
      PutLe64(Bits(numbers.values[i]), out);
    }
  }
  PutLe64(Bits(stats.sum), out);
}

DecodedStats DecodeStats(uint32_t rows, ByteReader* in, ColumnStats* stats) {
  const uint8_t form = in->Byte();
  if (!in->ok()) return DecodedStats::kDamaged;
  if ((form & kFormMask) == kNone) {
    return form == kNone && rows <= kRowsWithoutStats ? DecodedStats::kInValues
                                                      : DecodedStats::kDamaged;
  }
  uint64_t without = 0;
  uint64_t non_finite = 0;
  if ((form & kCountsFollow) != 0) {
    without = in->Varint();
    non_finite = in->Varint();
  }
  if (without >= rows || non_finite > rows - without) return DecodedStats::kDamaged;
  if (((form >> kFirstShift) & kSameMask) == kSameMask ||
      ((form >> kLastShift) & kSameMask) == kSameMask) {
    return DecodedStats::kDamaged;
  }
  stats->count = static_cast<uint32_t>(rows - without);
  stats->non_finite = static_cast<uint32_t>(non_finite);
  ReadNumbers(form, stats->count - stats->non_finite, in, stats);
  return in->ok() ? DecodedStats::kWritten : DecodedStats::kDamaged;
}

}  // namespace tacho::storage

// The first byte of a column of values: see docs/storage_format.md for what follows it.
//
//   raw         what nothing else can shorten
//   constant    all values are equal
//   gaps        values that are not there (or not finite) are left out, and said where
//   ordered     bits of doubles or floats as integers
//   quotient    integers over one divisor: see quotient.h
//   dictionary  the distinct values, and which of them each is
//
// The last three come down to columns of integers: see integer_codec.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "proto/base/stale_marker.h"
#include "storage/model/series.h"

namespace tacho::storage {

enum ValueEncoding : uint8_t {
  kRaw = 0,
  kConstant = 1,
  kGaps = 2,
  kOrdered = 3,
  kQuotient = 4,
  kDictionary = 5,
};
constexpr uint8_t kEncodingMask = 7;
constexpr uint8_t kFloats = 1 << 3;
constexpr uint8_t kExceptions = 1 << 4;
constexpr uint8_t kNear = 1 << 5;

// The values that a gap usually is; any other is written whole.
constexpr std::array<uint64_t, 2> kUsualGaps = {kStaleMarkerBits, 0x7ff8000000000000};

inline uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

}  // namespace tacho::storage

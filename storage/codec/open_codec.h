// Columns of open rows as bytes in memory, and back, bit for bit.
//
// Open columns are short and live for minutes, so this is made to be quick, not small: a few
// nanoseconds a value, where ColumnCodec, which seals them, takes ten times as long and more on a
// short column. The bytes never leave the process that made them.
//
//   byte 0    mode (2 bits), whether values are missing, whether all the rest is zero, whether
//             differences ascend (1 bit each), exponent e (3 bits)
//   bitmap    if values are missing: 1 bit a row, set for those that are there; the others have the
//             bits of the stale marker
//   mode 0    8 bytes: all values have these bits; nothing else
//   mode 1    the values times 10^e as integers: zig-zag varint of the first; if differences ascend
//             the varint of the smallest; blocks of the differences, less the smallest, or else
//             zig-zag
//   mode 2    8 bytes, bits of the first; 1 byte s; blocks of the bits of each value XOR those of
//             the one before, shifted right by s
//   blocks    of 16 numbers each: 1 byte width, then the numbers with so many bits, lowest first
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::storage {

// One thread at a time; keeps memory that it needs for each column.
class OpenEncoder {
 public:
  // Append the encoded column, of one value at least, to *out.
  void EncodeValues(std::span<const double> values, std::string* out);
  void EncodeIntegers(std::span<const int64_t> integers, std::string* out);  // Times and steps.

 private:
  void EncodePresent(std::span<const double> values, uint8_t flags, size_t flags_at,
                     std::string* out);

  std::vector<int64_t> integers_;
  std::vector<double> present_;
};

// Readable bytes that must follow those that are decoded.
inline constexpr size_t kOpenPadding = 8;
// Fill `out` with as many numbers as were encoded. The bytes must be an OpenEncoder's.
void DecodeOpenValues(absl::string_view bytes, std::span<double> out);
void DecodeOpenIntegers(absl::string_view bytes, std::span<int64_t> out);

}  // namespace tacho::storage

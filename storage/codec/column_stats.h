// Statistics of a column as they stand in its header, in few bytes and to the bit.
//
// byte form     bits 0-1  how numbers are written: 0 doubles, 1 floats, 2 decimals; 3: none are
//                         written, the statistics are those of the values that follow
//               bit 2     counts follow; else every row has a finite value
//               bit 3-4   first: 0 written, 1 is min, 2 is max    bits 5-6  last: the same
//               bit 7     max is min
// counts        varint rows without a value · varint values that are NaN or infinite
// doubles       le64 min · max · first · last · sum, as far as they are written
// floats        le32 min · max · first · last · le64 sum
// decimals      byte e · zig-zag min · varint max - min · first - min · last - min, of the numbers
//               times 10^e · zig-zag S - n × min - n × (max - min) / 2 · zig-zag bits of the sum
//               minus bits of S / 10^e, S being the integer nearest to the sum times 10^e and n the
//               number of finite values; modulo 2^64
#pragma once

#include <cstdint>
#include <string>

#include "storage/codec/bytes.h"
#include "storage/codec/column_codec.h"

namespace tacho::storage {

// A column of at most this many rows has no statistics in front: its values say as much in less.
inline constexpr uint32_t kRowsWithoutStats = 8;

// Appends the statistics of a column of `rows` rows; stats.count > 0.
void EncodeStats(const ColumnStats& stats, uint32_t rows, std::string* out);

enum class DecodedStats { kDamaged, kWritten, kInValues };
// Takes them off the front of *in. kInValues: they were left out, *stats is untouched.
DecodedStats DecodeStats(uint32_t rows, ByteReader* in, ColumnStats* stats);

}  // namespace tacho::storage

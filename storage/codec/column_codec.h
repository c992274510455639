// A column of values or times as bytes, and back, bit for bit.
//
// Encoded columns begin with one byte that names the encoding, so that a column is read whatever
// codec wrote it and a better codec is added beside the old. docs/storage_format.md draws each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {

// Statistics of a column, kept in front of its values so that coarse queries need not decode them.
// The stale marker counts nowhere.
struct ColumnStats {
  uint32_t count = 0;       // Values present.
  uint32_t non_finite = 0;  // Those of `count` that are NaN or infinite.
  // Over the finite values; meaningless if count == non_finite.
  double min = 0;
  double max = 0;
  double sum = 0;
  // Bit for bit as recorded; meaningless if count == 0.
  double first = 0;
  double last = 0;

  static ColumnStats Of(std::span<const double> values);
};

// Stateless, thread-safe.
class ColumnCodec {
 public:
  // Appends the encoded values to *out.
  static void EncodeValues(std::span<const double> values, std::string* out);
  // Replaces *out with exactly `count` values.
  //   DATA_LOSS  the bytes are not such a column: unknown encoding, too short or too long.
  static absl::Status DecodeValues(absl::string_view bytes, size_t count, std::vector<double>* out);

  // The same for times and steps.
  static void EncodeIntegers(std::span<const int64_t> integers, std::string* out);
  static absl::Status DecodeIntegers(absl::string_view bytes, size_t count,
                                     std::vector<int64_t>* out);
};

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

// A column of at most this many rows has no statistics in front: its values say as much in less.
inline constexpr uint32_t kRowsWithoutStats = 8;

// Appends the statistics of a column of `rows` rows; stats.count > 0.
void EncodeStats(const ColumnStats& stats, uint32_t rows, std::string* out);

enum class DecodedStats { kDamaged, kWritten, kInValues };
// Takes them off the front of *in. kInValues: they were left out, *stats is untouched.
DecodedStats DecodeStats(uint32_t rows, ByteReader* in, ColumnStats* stats);

}  // namespace tacho::storage

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

namespace tacho::storage {

// Statistics of a column, kept in front of its values so that coarse queries need not decode them.
// The stale marker counts nowhere.
struct ColumnStats {
  uint32_t count = 0;       // Values present.
  uint32_t non_finite = 0;  // Of them, NaN or infinite.
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

}  // namespace tacho::storage

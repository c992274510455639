// "Statistics" of docs/storage_format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/format/bytes.h"

namespace format_page {

struct Statistics {
  uint64_t stale = 0;       // Rows without a value.
  uint64_t not_finite = 0;  // Values that are NaN or infinite.
  double min = 0;           // Over the finite values, as the sum; +inf and -inf if there are none.
  double max = 0;
  double sum = 0;
  uint64_t first = 0;  // Bits.
  uint64_t last = 0;
};

// Reads those of a column with `rows` rows; nullopt if the column says that it has none.
std::optional<Statistics> ReadStatistics(Bytes* bytes, uint64_t rows);

// What the page says that they are. There is a value that is not stale.
Statistics StatisticsOf(const std::vector<uint64_t>& values);

// The name of the first number in which they differ, in a bit of it; "" if they are the same.
const char* Difference(const Statistics& stored, const Statistics& computed);

}  // namespace format_page

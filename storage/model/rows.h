// Rows of one layout: in memory, and as they lie in a journal entry.
#pragma once

#include <cstdint>
#include <span>

namespace tacho::storage {

// Rows as their sender holds them. values is row by row, times.size() × width of the layout.
// steps has one entry a row, or none if the layout has no steps.
struct RowsView {
  std::span<const int64_t> times;
  std::span<const int64_t> steps;
  std::span<const double> values;
};

}  // namespace tacho::storage

// A batch of rows as the journal holds it.
//
//   varint job id · varint layout id · varint rows · varint columns · byte 1 if the layout has
//   steps, else 0 · rows × le64 time · rows × le64 step (if any) · rows × columns × le64 bits of
//   the value
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::storage {

std::string EncodeRowsEntry(const Layout& layout, const RowsView& rows);

// The parts of an entry, still as bytes: they may lie at any address.
struct RowsEntry {
  JobId job = 0;  // The layout's: so that it is found when it is not in memory.
  LayoutId layout = 0;
  size_t rows = 0;
  size_t columns = 0;
  bool has_steps = false;
  absl::string_view times;
  absl::string_view steps;
  absl::string_view values;

  int64_t Time(size_t row) const { return At<int64_t>(times, row); }
  // kNoStep without steps.
  int64_t Step(size_t row) const { return has_steps ? At<int64_t>(steps, row) : kNoStep; }
  double Value(size_t row, size_t column) const {
    return At<double>(values, row * columns + column);
  }

 private:
  template <typename T>
  static T At(absl::string_view bytes, size_t index) {
    T value = 0;
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  }
};

// How many of `count` values, which lie as bytes at any address, are not the stale marker.
size_t CountValues(const char* values, size_t count);

// nullopt if the bytes are no such entry.
std::optional<RowsEntry> DecodeRowsEntry(absl::string_view bytes);

}  // namespace tacho::storage

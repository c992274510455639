// A frame: rows of one layout within one day, sorted by time, as they are sealed: one time column
// and a value column for each series that has a value in it.
//
// time column    varint rows · varint attempt · varint length · integer column of the times ·
//                varint length · integer column of the steps (length 0: no steps)
// value column   varint layout · varint rows · last time as zig-zag varint distance from the first
// ·
//                statistics · encoded values (to the end)
// statistics     varint count · varint non-finite · le64 bits of min, max, sum, first, last
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/column_codec.h"
#include "storage/keys.h"
#include "storage/series.h"

namespace tacho::storage {

// Rows of one layout in memory, in the order in which they came.
struct FrameRows {
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // Empty if the layout has none.
  std::vector<double> values;  // Row by row.

  size_t size() const { return times.size(); }
};

// Calls `put(day, key, value)` for each column of the frames, one frame a day, that the rows make.
using PutColumn = std::function<void(int64_t day, absl::string_view key, absl::string_view value)>;
void EncodeFrames(const Layout& layout, const FrameRows& rows, FramePosition position,
                  const PutColumn& put);

struct TimeColumn {
  uint32_t attempt = 0;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // One a row; kNoStep if there are none.
};
//   DATA_LOSS  the bytes are no time column.
absl::StatusOr<TimeColumn> DecodeTimeColumn(absl::string_view bytes);

// What stands in front of a value column's values.
struct ValueColumnHeader {
  LayoutId layout = 0;
  uint32_t rows = 0;
  int64_t last_time_ns = 0;
  ColumnStats stats;
  absl::string_view encoded;  // The values; see ColumnCodec::DecodeValues().
};
//   DATA_LOSS  the bytes are no value column.
absl::StatusOr<ValueColumnHeader> DecodeValueColumnHeader(int64_t first_time_ns,
                                                          absl::string_view bytes);

}  // namespace tacho::storage

// A frame: rows of one layout within one day, as they are sealed: one time column and a value
// column for each series that has a value in it. Its rows ascend strictly in (time, step).
//
// time column    varint rows · varint attempt · varint length · integer column of the times ·
//                varint length · integer column of the steps (length 0: no steps) ·
//                if there are steps: zig-zag varint first step · zig-zag varint last step
// value column   varint layout · varint rows · varint span · statistics (see column_codec.h) ·
//                encoded values, to the end
// span           last time minus first, in units of 10^(3u) ns; its two lowest bits are u
//
// A value column's header is its layout, rows, span and statistics: coarse queries read nothing
// else.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/codec/column_codec.h"
#include "storage/codec/keys.h"
#include "storage/model/series.h"

namespace tacho::storage {

// Rows of one layout in memory, in the order in which they came.
struct FrameRows {
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // Empty if the layout has none.
  std::vector<double> values;  // Column by column, size() each.

  size_t size() const { return times.size(); }
};

// Where a frame lies and how large it is.
struct FrameRef {
  int64_t day = 0;
  LayoutId layout = 0;
  int64_t first_time_ns = 0;
  FramePosition position = 0;
  uint32_t rows = 0;
  JobId job = 0;  // The layout's.
};

using PutColumn = std::function<void(int64_t day, absl::string_view key, absl::string_view value)>;

// Encodes one frame, a column at a time.
class FrameEncoder {
 public:
  // Puts the time column. The times, and steps unless the layout has none, ascend strictly as
  // pairs, are not empty and of one day; times must outlive this.
  FrameEncoder(const Layout& layout, std::span<const int64_t> times, std::span<const int64_t> steps,
               FramePosition position, const PutColumn& put);

  // Puts the column of the layout's series `column`, unless it has no value in it.
  void Put(size_t column, std::span<const double> values);

  const FrameRef& frame() const { return frame_; }

 private:
  const Layout& layout_;
  const std::span<const int64_t> times_;
  const PutColumn& put_;
  FrameRef frame_;
  std::string bytes_;
};

// Calls `put` for each column of the frames, one frame a day, that the rows make; returns them. Of
// rows with the same time and step each column keeps the last value.
std::vector<FrameRef> EncodeFrames(const Layout& layout, const FrameRows& rows,
                                   FramePosition position, const PutColumn& put);

struct TimeColumn {
  uint32_t attempt = 0;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // One a row; kNoStep if there are none.
};
//   DATA_LOSS  the bytes are no time column.
absl::StatusOr<TimeColumn> DecodeTimeColumn(absl::string_view bytes);
// The parts of a time column that can be read without decoding its columns.
struct TimeColumnEnds {
  uint32_t rows = 0;
  uint32_t attempt = 0;
  int64_t first_step = kNoStep;  // Steps of the first and of the last row.
  int64_t last_step = kNoStep;
};
absl::StatusOr<TimeColumnEnds> DecodeTimeColumnEnds(absl::string_view bytes);
// Only how many rows it has.
absl::StatusOr<uint32_t> DecodeTimeColumnRows(absl::string_view bytes);

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

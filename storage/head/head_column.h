// One series of one layout as the head holds it at one moment.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/codec/keys.h"
#include "storage/head/row_block.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

// Shares the blocks of rows with the head, so that thousands of columns can be held at once and
// decoded one after the other, whatever becomes of the rows meanwhile.
struct HeadColumn {
  FramePosition position = 0;  // Of the last row.
  uint32_t attempt = 0;
  uint32_t column = 0;              // Of the blocks.
  std::vector<RowBlockPtr> blocks;  // Oldest first; `tail` came after them.
  SampleBlock tail;
  // Of all times; rows need not ascend.
  int64_t first_time_ns = INT64_MAX;
  int64_t last_time_ns = INT64_MIN;

  // Samples with times in [begin_ns, end_ns), in the order in which they came, stale markers
  // included. An end of INT64_MAX is no end.
  SampleBlock Decode(int64_t begin_ns, int64_t end_ns) const;
};

}  // namespace tacho::storage

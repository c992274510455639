// One sample out of its columns, and where samples lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/model/series.h"
#include "storage/model/series_reader.h"

namespace tacho::server::query {

struct Sample {
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

inline Sample SampleOf(const storage::SampleBlock& block, size_t i) {
  return {block.times[i], block.steps[i], block.attempts[i], block.values[i]};
}
inline Sample SampleOf(const storage::SampleView& view, size_t i) {
  const storage::SampleColumns& columns = view.columns;
  return {columns.times[i], columns.steps[i], view.AttemptOf(i), columns.values[i]};
}

// Where samples lie along an axis. first > last: there are none.
struct AxisExtent {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();

  bool empty() const { return first > last; }
  void Include(int64_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

}  // namespace tacho::server::query

// One sample, out of its columns.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace tacho::server::query

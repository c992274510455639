// Samples of one series from several frames, as one.
#pragma once

#include <vector>

#include "storage/keys.h"
#include "storage/series_reader.h"

namespace tacho::storage {

// Samples that were written together.
struct MergeInput {
  FramePosition position = 0;
  SampleBlock samples;  // In the order in which they came; stale markers included.
};

// All samples that `options` wants, in ascending (time, attempt, step); of the same such triple the
// one of the highest position counts, and within a position the last. A stale marker is no write:
// it neither appears nor hides anything.
SampleBlock MergeSamples(const std::vector<MergeInput>& inputs, const ReadOptions& options);

}  // namespace tacho::storage

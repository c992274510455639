// Queries a part of a job as a dashboard does, through the collector's RangeQuery, and compares the
// answer with the model: the rows as they are, and reduced to a few buckets.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/store.h"
#include "tests/simulate/world/model.h"

namespace tacho::simulate {

struct RangePart {
  std::string job;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // Not included.
  uint32_t max_points = 10;
  bool by_step = false;    // The axis.
  bool effective = false;  // Without superseded attempts: here there are none.
};

// What is wrong with the answers; nothing if nothing is. The status is that of the query. Adds to
// *samples how many the answer had.
absl::StatusOr<std::string> CheckRange(const storage::Store& store, const Model& model,
                                       const RangePart& part, uint64_t* samples);

}  // namespace tacho::simulate

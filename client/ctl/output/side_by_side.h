// Finds rows of several series that can share a line of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/ctl/text/samples.h"

namespace tacho::ctl {

struct SampleSeries {
  v1::SeriesInfo info;
  std::vector<Point> points;    // Filled if the query does not reduce,
  std::vector<Bucket> buckets;  // this one if it does.
  uint64_t bucket_width = 0;
};

// For each line, the index of each series' sample, or kNone where it has none.
inline constexpr size_t kNone = static_cast<size_t>(-1);
using Lines = std::vector<std::vector<size_t>>;

// Points with the same step (or time) share a line. nullopt if a series has a key twice or a point
// without one, or if so few share lines that the table would be mostly empty.
std::optional<Lines> JoinPoints(const std::vector<SampleSeries>& series, bool by_step);

// The n-th buckets of all series share a line if all series have equally many and no n-th bucket
// reaches into the (n+1)-th of another series.
std::optional<Lines> JoinBuckets(const std::vector<SampleSeries>& series, bool by_step);

}  // namespace tacho::ctl

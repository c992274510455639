// Rows of several series that can stand in one line of a table.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "client/ctl/text/samples.h"

namespace tacho::ctl {

struct SampleSeries {
  v1::SeriesInfo info;
  std::vector<Point> points;    // Filled if the query does not reduce,
  std::vector<Bucket> buckets;  // this one if it does.
};

// For each line, the index of each series' sample, or kNone where it has none.
inline constexpr size_t kNone = static_cast<size_t>(-1);
using Lines = std::vector<std::vector<size_t>>;

// Points meet where step (or time) is the same. nullopt if a series has a key twice or a point
// without one, or if so few meet that the table would be mostly holes.
std::optional<Lines> JoinPoints(const std::vector<SampleSeries>& series, bool by_step);

// The n-th buckets of all series meet if there are equally many and no n-th reaches into an
// (n+1)-th of another series.
std::optional<Lines> JoinBuckets(const std::vector<SampleSeries>& series, bool by_step);

}  // namespace tacho::ctl

// Buckets along an axis, worked out the plain way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tacho::server::reference {

struct Extent {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  void Include(int64_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

// Parts of the axis, in buckets of one width. Each part begins with a bucket of its own.
struct Grid {
  std::vector<Extent> stretches;
  int64_t width = 1;

  int64_t Buckets() const {
    int64_t buckets = 0;
    for (const Extent& one : stretches) buckets += (one.last - one.first) / width + 1;
    return buckets;
  }
  int64_t BucketOf(int64_t position) const {
    int64_t before = 0;
    for (const Extent& one : stretches) {
      if (position <= one.last) return before + (position - one.first) / width;
      before += (one.last - one.first) / width + 1;
    }
    ADD_FAILURE() << position << " is in no stretch";
    return 0;
  }
};

// The narrowest buckets of which there are at most so many.
inline Grid GridOf(const std::vector<Extent>& stretches, uint32_t max_points) {
  const int64_t length = stretches.back().last - stretches.front().first;
  if (stretches.size() == 1 || max_points == 1) {
    return {{{stretches.front().first, stretches.back().last}}, length / max_points + 1};
  }
  int64_t too_narrow = 0;
  int64_t fits = length + 1;
  while (fits - too_narrow > 1) {
    const int64_t middle = (fits + too_narrow) / 2;
    (Grid{stretches, middle}.Buckets() <= max_points ? fits : too_narrow) = middle;
  }
  return {stretches, fits};
}

}  // namespace tacho::server::reference

// Many values as a few figures.
#pragma once

#include <cstdint>
#include <vector>

namespace tacho::server {

// All but the counts are over the finite values and NaN if there is none: one diverged task must
// not hide the others, and `non_finite` tells of it.
struct Summary {
  double sum = 0;
  double avg = 0;
  double min = 0;
  double max = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  uint64_t count = 0;  // Values, of whatever kind.
  uint64_t non_finite = 0;
};

Summary Summarize(std::vector<double> values);

}  // namespace tacho::server

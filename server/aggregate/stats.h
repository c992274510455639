// Many values as a few figures.
#pragma once

#include <span>
#include <vector>

#include "server/aggregate/aggregate_rule.h"

namespace tacho::server::aggregate {

// One result for each of `stats`, at the end of *out. All but the counts are over the finite values
// and NaN if there is none: one diverged task must not hide the others, and non_finite tells of it.
// Quantiles interpolate between the closest ranks, as PromQL's quantile(). Not kRate. The values
// come back in another order.
void ComputeStats(std::span<double> values, const std::vector<AggregateStat>& stats,
                  std::vector<double>* out);

}  // namespace tacho::server::aggregate

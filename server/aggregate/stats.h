// Reduces many values to a few figures.
#pragma once

#include <span>
#include <vector>

#include "server/aggregate/aggregate_rule.h"

namespace tacho::server::aggregate {

// Appends one result for each of `stats` to *out. All but the counts use the finite values only,
// and are NaN if there is none: one diverged task must not hide the others, and non_finite counts
// it. Quantiles interpolate between the closest ranks, as PromQL's quantile(). kRate is not
// allowed. Changes the order of the values.
void ComputeStats(std::span<double> values, const std::vector<AggregateStat>& stats,
                  std::vector<double>* out);

}  // namespace tacho::server::aggregate

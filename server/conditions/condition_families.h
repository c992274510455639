// Conditions as metric families, bounded in number. metric_table.h lists them.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <vector>

#include "server/conditions/condition_board.h"

namespace tacho::server::conditions {

// The families of `conditions`, in their order, of at most `max_lines` lines. The lines of one
// condition are all there or none. tacho_conditions_lines_left_out counts the others.
std::vector<prometheus::MetricFamily> ConditionFamilies(const JobConditions& conditions,
                                                        size_t max_lines);

}  // namespace tacho::server::conditions

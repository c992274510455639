// Conditions as metric families, bounded in number. metric_table.h lists them.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <vector>

#include "server/conditions/condition_board.h"

namespace tacho::server::conditions {

// Of all that is on the board, job after job, until `max_lines` are made: those of a job and
// condition together or not at all. tacho_conditions_lines_left_out counts the rest.
std::vector<prometheus::MetricFamily> ConditionFamilies(const JobConditions& conditions,
                                                        size_t max_lines);

}  // namespace tacho::server::conditions

// The ledgers of jobs as metric families. server/metrics/metric_table.h has their help.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "server/goodput/goodput_board.h"

namespace tacho::server::goodput {

// At most 24 lines a job, for at most GoodputBoardOptions::max_jobs jobs, and one line for each
// host of a job, at most `max_host_lines` in all: a job has lines for all of its hosts or for none.
std::vector<prometheus::MetricFamily> GoodputFamilies(
    const std::vector<std::shared_ptr<const BoardGoodput>>& jobs, const JobRoundsStats& stats,
    size_t max_host_lines);

}  // namespace tacho::server::goodput

// The ledgers of jobs as metric families. metric_table.h has their help.
#pragma once

#include <prometheus/metric_family.h>

#include <memory>
#include <vector>

#include "server/goodput/goodput_board.h"

namespace tacho::server {

// At most 24 lines a job, of at most GoodputBoardOptions::max_jobs.
std::vector<prometheus::MetricFamily> GoodputFamilies(
    const std::vector<std::shared_ptr<const JobGoodput>>& jobs, const GoodputBoardStats& stats);

}  // namespace tacho::server

// The tables that 'tachoctl query' shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/ctl/line/environment.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/side_by_side.h"
#include "client/ctl/text/table.h"

namespace tacho::ctl {

// In all of them at most `limit` rows are shown, the first and the last, with a remark between.

// TIME STEP VALUE ATTEMPT, those that there are.
Table PointTable(const Environment& env, const SampleSeries& series, size_t limit);

// TIME STEPS MIN AVG MAX LAST COUNT NON-FINITE, those that there are.
Table BucketTable(const Environment& env, const SampleSeries& series, size_t limit);

// TIME STEP and one column a series: its values, or the averages of its buckets.
Table JoinedTable(const Environment& env, const QueryOptions& options,
                  const std::vector<SampleSeries>& series, const Lines& lines, size_t limit);

// One line a series: name, sparkline of `sparkline_width`, min, avg, max, last, samples.
void PrintShapeTable(const Environment& env, const std::vector<SampleSeries>& series,
                     const std::vector<std::string>& names, size_t sparkline_width);

}  // namespace tacho::ctl

// One job in one scrape: its rows, what of them goes where, and what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/aggregate/job_state.h"
#include "server/aggregate/latest_copy.h"

namespace tacho::server {

struct JobScrape {
  // Values of a row that go into this job's cells.
  struct Input {
    const CopiedRow* row = nullptr;
    const LayoutPlan* plan = nullptr;
    const ColumnTargets* targets = nullptr;
    const std::vector<double>* growth = nullptr;  // Of the plan's counters.
  };

  JobState* state = nullptr;
  std::span<CopiedRow> rows;                // Those of a source together.
  std::vector<LayoutPlan*> plans;           // Of the rows.
  std::vector<std::vector<double>> growth;  // Of the rows' counters since the last scrape.
  std::vector<Input> inputs;
  std::vector<double> results;  // Cells have their places in it.

  bool listed = false;  // Something was received within the hour.
  uint32_t attempt = 0;
  int64_t last_time_ns = 0;
  // Of what reports now; highest and lowest of the tasks' newest steps.
  absl::flat_hash_set<uint32_t> tasks;
  absl::flat_hash_set<absl::string_view> hosts;
  absl::flat_hash_set<absl::string_view> task_hosts;  // Those with a task of the job.
  uint64_t silent_tasks = 0;  // Of the newest attempt; have reported within the hour.
  uint64_t series = 0;
  std::optional<int64_t> last_step_max;
  std::optional<int64_t> last_step_min;
};

// Fills in what is above but for plans, inputs and results.
void LookAtRows(absl::Time listed_from, JobScrape* job);

// Of a series that several layouts of a source have, only the newest value stays; the others become
// stale markers. Counts the series that report and those that left.
void KeepNewest(JobScrape* job);

// Adds the growth of counters to their cells, and counts each cell's values.
void CountValues(JobScrape* job);

// Computes `results`: of each cell that is shown one value for each of its stats. The others cost
// nothing: a page that is full is no more work than its lines. Takes `scratch` for memory.
void ComputeCells(JobScrape* job, std::vector<double>* scratch);

// How many lines a cell has; 0 if nothing of it reports.
size_t LinesOf(const JobState& state, const Cell& cell);

// The stats of a gauge or counter.
const std::vector<AggregateStat>& StatsOf(const JobState& state, const Cell& cell);

}  // namespace tacho::server

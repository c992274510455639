// One job in one scrape: its rows, where their values go, and the results.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/aggregate/job_state.h"
#include "server/aggregate/latest_copy.h"

namespace tacho::server::aggregate {

struct JobScrape {
  // Values of a row that go into this job's cells.
  struct Input {
    const CopiedRow* row = nullptr;
    const LayoutPlan* plan = nullptr;
    const ColumnTargets* targets = nullptr;
    const double* growth = nullptr;  // By index into the plan's counters.
  };

  JobState* state = nullptr;
  std::span<CopiedRow> rows;       // Those of a source together.
  std::vector<LayoutPlan*> plans;  // By row.
  std::vector<double> growth;      // Since the last scrape, of all rows' counters.
  std::vector<size_t> growth_of;   // Where that of each row begins.
  std::vector<Input> inputs;
  // By cell.
  std::vector<uint32_t> counts;        // Series that report; no line without one.
  std::vector<uint8_t> shown;          // It fits on the page: 1.
  std::vector<uint32_t> first_result;  // Where the results of a shown cell begin in `results`.
  std::vector<double> results;

  bool listed = false;  // Something was received within the hour.
  uint32_t attempt = 0;
  int64_t last_time_ns = 0;
  uint64_t silent_tasks = 0;  // Tasks of the newest attempt, silent for up to an hour.
  uint64_t series = 0;        // Series that report now.
  // Highest and lowest of the newest steps of the tasks that report.
  std::optional<int64_t> last_step_max;
  std::optional<int64_t> last_step_min;
};

// Finds the tasks and hosts that report, and fills in the members after `results` except `series`.
void LookAtRows(absl::Time listed_from, JobScrape* job);

// Fills in `plans`, made if the layout is new.
void PlanJob(JobScrape* job);

// Where several layouts of a source have the same series, keeps only the newest value; the others
// become stale markers. Counts the series that report and those that left.
void KeepNewest(JobScrape* job);

// Adds the growth of counters to their cells, and counts each cell's values. The cells are briefed.
void CountValues(JobScrape* job);

// Computes `results`: for each cell that is shown, one value for each of its stats. Other cells
// cost nothing, so a full page is no more work than its lines.
void ComputeCells(JobScrape* job);

// How many lines a cell has; 0 if none of its series reports.
inline size_t LinesOf(const JobScrape& job, size_t cell) {
  return job.counts[cell] == 0 ? 0 : job.state->briefs[cell].lines;
}

}  // namespace tacho::server::aggregate

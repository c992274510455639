// What is remembered of a job from scrape to scrape: which column of which layout is in which
// aggregate, and how far its counters were.
//
// A layout is looked at closely once, when it first shows a row; a scrape then only follows
// numbers. Memory: 4 bytes a column and rule, 32 bytes a series of a counter, some hundred bytes an
// aggregate. All of it goes when the job leaves the store's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/aggregate/cell.h"
#include "storage/series.h"

namespace tacho::server {

// Where the columns of a layout go by one rule.
struct ColumnTargets {
  uint32_t rule = 0;
  std::vector<uint32_t> cells;  // By column; kNoCell: nowhere. Not those of histograms.
  struct Bucket {
    uint32_t counter = 0;  // Index into LayoutPlan::counters.
    uint32_t cell = 0;
    uint32_t bucket = 0;
    uint32_t next = kNoCell;  // The next bucket of the same histogram, which includes this one.
  };
  std::vector<Bucket> buckets;
  uint32_t without_group = 0;  // Columns that max_groups has kept out.
  uint32_t conflicts = 0;      // Columns whose lines another rule makes already.
  bool used = false;           // Any column goes anywhere.
};

struct LayoutPlan {
  std::vector<ColumnTargets> own;
  // What rules with to_jobs take to the jobs of the layout's host: rule and columns.
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> to_jobs;
  // Where these go: for each of the jobs, one for each of the rules.
  std::vector<storage::JobId> bound_jobs;
  std::vector<ColumnTargets> bound;

  struct Counter {
    uint32_t column = 0;
    uint32_t track = 0;  // Of JobState::tracks.
  };
  std::vector<Counter> counters;
  // Columns whose series other layouts of the source have too.
  struct Shared {
    uint32_t column = 0;
    uint32_t slot = 0;  // The same for the same series.
  };
  std::vector<Shared> shared;
  uint32_t shared_slots = 0;  // Of the source.
  uint64_t planned_with = 0;  // The layouts of the source when these were found.
  uint32_t fresh_series = 0;  // That it had in the last scrape.
};

struct JobState {
  JobState(storage::JobId job, absl::string_view job_name, const AggregateRules& all_rules);

  // Which aggregates a layout of this job is in. Its counters are planned before.
  void PlanLayout(const storage::Layout& layout, LayoutPlan* plan);
  // Where columns of a layout go by a rule under this job, which need not be the layout's own.
  ColumnTargets MakeTargets(const storage::Layout& layout, const LayoutPlan& plan, uint32_t rule,
                            const std::vector<uint32_t>& columns);

  const storage::JobId id;
  const std::string name;
  const AggregateRules* rules;  // Not owned; outlives the state.

  absl::flat_hash_map<storage::LayoutId, std::unique_ptr<LayoutPlan>> layouts;
  std::vector<Cell> cells;
  std::vector<CounterTrack> tracks;
  bool cells_changed = false;
  storage::SeriesId highest_series = 0;

  // What was there in the last scrape, and has left since.
  absl::flat_hash_set<uint32_t> tasks;
  uint64_t tasks_left = 0;
  uint64_t series_left = 0;

 private:
  // The rules that take the series, in order.
  void FindRules(const storage::Series& series, std::vector<uint32_t>* found);
  const std::vector<uint32_t>& RulesOfMetric(const storage::Series& series);
  // The cell of a series by a rule, made if need be. kNoCell: there is none, and why is counted.
  uint32_t FindOrAddCell(const storage::Series& series, uint32_t rule, ColumnTargets* targets);
  uint32_t AddCell(const storage::Series& series, uint32_t rule, const std::string& group_labels,
                   ColumnTargets* targets);
  uint32_t AddLine(Cell cell, ColumnTargets* targets);
  void AddBuckets(const storage::Layout& layout, const LayoutPlan& plan,
                  const std::vector<uint32_t>& columns, ColumnTargets* targets);

  absl::flat_hash_map<storage::MetricId, std::vector<uint32_t>> rules_of_;
  // By rule, metric and group.
  absl::flat_hash_map<std::string, uint32_t> cell_of_;
  // Of rules that group by nothing: of metrics of this job.
  absl::flat_hash_map<std::pair<uint32_t, storage::MetricId>, uint32_t> plain_cell_of_;
  absl::flat_hash_map<std::string, uint32_t> cell_of_line_;
  absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> groups_;
};

// Text as the value of a label on /metrics.
std::string EscapeLabelValue(absl::string_view value);

}  // namespace tacho::server

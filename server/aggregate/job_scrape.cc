// The steps of a scrape for one job: who reports, where each value goes, what the values make.
// Layouts are planned once, when they first show a row; a scrape that finds nothing new only
// follows numbers.
#include "server/aggregate/job_scrape.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "server/aggregate/stats.h"

namespace tacho::server::aggregate {
namespace {

const double kStale = StaleMarker();

bool IsValue(double value) { return !IsStaleMarker(value); }

// Calls `group` with the first and one past the last row of each source.
template <typename Group>
void ForEachSource(const JobScrape& job, const Group& group) {
  for (size_t begin = 0; begin < job.rows.size();) {
    size_t end = begin + 1;
    while (end < job.rows.size() && job.rows[end].source == job.rows[begin].source) ++end;
    group(begin, end);
    begin = end;
  }
}

// Takes the step of a source from its newest row that has one.
void IncludeStep(std::span<const CopiedRow> rows, JobScrape* job) {
  const CopiedRow* newest = nullptr;
  for (const CopiedRow& row : rows) {
    if (row.values.empty() || row.step == storage::kNoStep) continue;
    if (newest == nullptr || row.time_ns > newest->time_ns) newest = &row;
  }
  if (newest == nullptr) return;
  job->last_step_max = std::max(newest->step, job->last_step_max.value_or(newest->step));
  job->last_step_min = std::min(newest->step, job->last_step_min.value_or(newest->step));
}

// The same for the same set of layouts.
uint64_t MarkOf(std::span<const CopiedRow> rows) {
  uint64_t mark = rows.size();
  for (const CopiedRow& row : rows) {
    uint64_t id = row.layout->id * 0x9e3779b97f4a7c15;
    mark += id ^ (id >> 29);
  }
  return mark;
}

// Every series of several layouts gets a number, in all of them.
void FindShared(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans) {
  constexpr uint32_t kOnce = UINT32_MAX;
  absl::flat_hash_map<storage::SeriesId, uint32_t> slot_of;
  uint32_t slots = 0;
  for (const CopiedRow& row : rows) {
    for (const storage::Series* series : row.layout->series) {
      const auto [found, is_new] = slot_of.try_emplace(series->id, kOnce);
      if (!is_new && found->second == kOnce) found->second = slots++;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    plans[i]->shared.clear();
    plans[i]->shared_slots = slots;
    if (slots == 0) continue;
    for (uint32_t column = 0; column < rows[i].layout->series.size(); ++column) {
      const uint32_t slot = slot_of[rows[i].layout->series[column]->id];
      if (slot != kOnce) plans[i]->shared.push_back({column, slot});
    }
  }
}

// Series that another layout follows already go on there.
void FindCounters(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans,
                  JobState* state) {
  absl::flat_hash_map<storage::SeriesId, uint32_t> track_of;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [column, track] : plans[i]->counters) {
      track_of[rows[i].layout->series[column]->id] = track;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (plans[i]->planned_with != 0) continue;
    for (uint32_t column = 0; column < rows[i].layout->series.size(); ++column) {
      const storage::Series& series = *rows[i].layout->series[column];
      if (series.metric->type == storage::MetricType::kGauge) continue;
      const auto next = static_cast<uint32_t>(state->tracks.size());
      const auto [found, is_new] = track_of.try_emplace(series.id, next);
      if (is_new) state->tracks.emplace_back();
      plans[i]->counters.push_back({column, found->second});
    }
  }
}

// Brings the plans of all layouts of a source up to date, if a layout has come since the last time:
// several may have the same series, as those of a task's next attempt. A new plan is empty.
void PlanSource(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans,
                JobState* state) {
  TACHO_CHECK(rows.size() == plans.size());
  const uint64_t mark = MarkOf(rows);
  bool old = false;
  for (const LayoutPlan* plan : plans) old |= plan->planned_with != mark;
  if (!old) return;
  if (rows.size() > 1) FindShared(rows, plans);
  FindCounters(rows, plans, state);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (plans[i]->planned_with == 0) state->PlanLayout(*rows[i].layout, plans[i]);
    plans[i]->planned_with = mark;
  }
}

void KeepNewestOfSource(size_t begin, size_t end, JobScrape* job) {
  const uint32_t slots = job->plans[begin]->shared_slots;
  if (slots == 0) return;
  struct Best {
    int64_t time_ns = INT64_MIN;
    double* value = nullptr;
  };
  std::vector<Best> best(slots);
  for (size_t i = begin; i < end; ++i) {
    CopiedRow& row = job->rows[i];
    if (row.values.empty()) continue;
    for (const auto& [column, slot] : job->plans[i]->shared) {
      const bool newer = best[slot].value == nullptr || row.Time(column) >= best[slot].time_ns;
      double* const older = newer ? best[slot].value : &row.values[column];
      if (older != nullptr) *older = kStale;
      if (newer) best[slot] = {row.Time(column), &row.values[column]};
    }
  }
}

uint32_t CountFresh(const CopiedRow& row) {
  return static_cast<uint32_t>(std::count_if(row.values.begin(), row.values.end(), IsValue));
}

void AddGrowth(const JobScrape::Input& input, JobScrape* job) {
  std::vector<Cell>& cells = job->state->cells;
  for (const auto& [counter, cell] : input.targets->cells->counters) {
    cells[cell].total += input.growth[counter];
  }
  for (const ColumnTargets::Bucket& bucket : input.targets->buckets) {
    Cell& cell = cells[bucket.cell];
    const double grown = input.growth[bucket.counter];
    cell.buckets[bucket.bucket].growth += grown;
    if (bucket.next != kNoCell) cell.buckets[bucket.next].growth -= grown;
    job->counts[bucket.cell] +=
        IsValue(input.row->values[input.plan->counters[bucket.counter].column]);
  }
}

void ComputeStatsOfCell(uint32_t index, std::span<double> values, JobScrape* job) {
  const Cell& cell = job->state->cells[index];
  const size_t first = job->results.size();
  job->first_result[index] = static_cast<uint32_t>(first);
  const std::vector<AggregateStat>& stats = StatsOf(*job->state, cell);
  ComputeStats(values, stats, &job->results);
  if (cell.kind != Cell::Kind::kCounter) return;
  for (size_t i = 0; i < stats.size(); ++i) {
    if (stats[i].function == AggregateFunction::kSum) job->results[first + i] = cell.total;
  }
}

bool HasStats(const Cell& cell) {
  return cell.kind == Cell::Kind::kGauge || cell.kind == Cell::Kind::kCounter;
}

// Counts the tasks of the newest attempt whose rows have all been silent for too long.
uint64_t CountSilentTasks(absl::Time listed_from, const JobScrape& job) {
  const absl::flat_hash_set<uint32_t>& reporting = job.state->present.tasks;
  absl::flat_hash_set<uint32_t> silent;
  for (const CopiedRow& row : job.rows) {
    if (row.copy || !row.values.empty() || row.received < listed_from) continue;
    if (!row.source->task || row.layout->attempt != job.attempt) continue;
    if (!reporting.contains(*row.source->task)) silent.insert(*row.source->task);
  }
  return silent.size();
}

void FindPresent(JobScrape* job) {
  Presence now;
  for (const CopiedRow& row : job->rows) {
    if (!row.copy && !row.values.empty()) now.layouts.push_back(row.layout->id);
  }
  Presence& before = job->state->present;
  if (now.layouts == before.layouts) return;
  for (const CopiedRow& row : job->rows) {
    if (row.copy || row.values.empty()) continue;
    now.hosts.insert(row.source->host);
    if (!row.source->task) continue;
    now.tasks.insert(*row.source->task);
    now.task_hosts.insert(row.source->host);
  }
  for (const uint32_t task : before.tasks) job->state->tasks_left += !now.tasks.contains(task);
  before = std::move(now);
}

}  // namespace

void LookAtRows(absl::Time listed_from, JobScrape* job) {
  for (const CopiedRow& row : job->rows) {
    if (row.copy || row.received < listed_from) continue;
    job->last_time_ns = job->listed ? std::max(job->last_time_ns, row.time_ns) : row.time_ns;
    job->attempt = std::max(job->attempt, row.layout->attempt);
    job->listed = true;
  }
  FindPresent(job);
  job->silent_tasks = CountSilentTasks(listed_from, *job);
  ForEachSource(*job, [job](size_t begin, size_t end) {
    if (!job->rows[begin].copy) IncludeStep(job->rows.subspan(begin, end - begin), job);
  });
}

void PlanJob(JobScrape* job) {
  for (const CopiedRow& row : job->rows) {
    std::unique_ptr<LayoutPlan>& plan = job->state->layouts[row.layout->id];
    if (plan == nullptr) plan = std::make_unique<LayoutPlan>();
    job->plans.push_back(plan.get());
  }
  ForEachSource(*job, [job](size_t begin, size_t end) {
    PlanSource(job->rows.subspan(begin, end - begin),
               std::span(job->plans).subspan(begin, end - begin), job->state);
  });
}

void KeepNewest(JobScrape* job) {
  ForEachSource(*job, [job](size_t begin, size_t end) {
    KeepNewestOfSource(begin, end, job);
    uint32_t before = 0, now = 0;
    for (size_t i = begin; i < end; ++i) {
      before += job->plans[i]->fresh_series;
      const uint32_t fresh = CountFresh(job->rows[i]);
      job->rows[i].full = fresh == job->rows[i].values.size();
      job->plans[i]->fresh_series = fresh;
      now += fresh;
    }
    if (job->rows[begin].copy) return;
    job->series += now;
    if (before > now) job->state->series_left += before - now;
  });
}

void CountValues(JobScrape* job) {
  job->counts.assign(job->state->cells.size(), 0);
  // Full rows whose columns go the same ways, as those of a job's tasks do, are counted together.
  absl::flat_hash_map<const ColumnCells*, uint32_t> full_rows;
  for (const JobScrape::Input& input : job->inputs) {
    AddGrowth(input, job);
    if (input.row->full) {
      ++full_rows[input.targets->cells];
      continue;
    }
    for (const auto& [column, cell] : input.targets->cells->values) {
      job->counts[cell] += IsValue(input.row->values[column]);
    }
  }
  for (const auto& [cells, rows] : full_rows) {
    for (const auto& [column, cell] : cells->values) job->counts[cell] += rows;
  }
  for (size_t i = 0; i < job->counts.size(); ++i) {
    const uint32_t counter = job->state->briefs[i].counter;
    if (counter != kNoCell) job->counts[i] = job->counts[counter];
  }
}

void ComputeCells(JobScrape* job) {
  const std::vector<Cell>& cells = job->state->cells;
  TACHO_CHECK(job->shown.size() == cells.size() && job->counts.size() == cells.size());
  // Where the next value of each cell goes.
  std::vector<uint32_t> next(cells.size(), kNoCell);
  uint32_t end = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (job->shown[i] == 0 || !HasStats(cells[i])) continue;
    next[i] = end;
    end += job->counts[i];
  }
  std::vector<double> scratch(end);
  absl::flat_hash_map<const ColumnCells*, std::vector<ColumnCells::Place>> shown;
  for (const JobScrape::Input& input : job->inputs) {
    const auto [found, is_new] = shown.try_emplace(input.targets->cells);
    if (is_new) {
      std::copy_if(found->first->values.begin(), found->first->values.end(),
                   std::back_inserter(found->second),
                   [&next](const auto& place) { return next[place.cell] != kNoCell; });
    }
    for (const auto& [column, cell] : found->second) {
      const double value = input.row->values[column];
      if (IsValue(value)) scratch[next[cell]++] = value;
    }
  }
  job->first_result.resize(cells.size());
  for (uint32_t i = 0; i < cells.size(); ++i) {
    if (next[i] == kNoCell) continue;
    const uint32_t count = job->counts[i];
    ComputeStatsOfCell(i, std::span(scratch.data() + next[i] - count, count), job);
  }
}

}  // namespace tacho::server::aggregate

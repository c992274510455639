#include "server/aggregate/job_scrape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "server/aggregate/stats.h"

namespace tacho::server {
namespace {

const double kStale = std::bit_cast<double>(storage::kStaleMarkerBits);

bool IsValue(double value) { return std::bit_cast<uint64_t>(value) != storage::kStaleMarkerBits; }

const storage::SeriesSource& SourceOf(const CopiedRow& row) {
  return *row.layout->series.front()->source;
}

// Calls `group` with the first and one past the last row of each source.
template <typename Group>
void ForEachSource(const JobScrape& job, const Group& group) {
  for (size_t begin = 0; begin < job.rows.size();) {
    size_t end = begin + 1;
    while (end < job.rows.size() && &SourceOf(job.rows[end]) == &SourceOf(job.rows[begin])) ++end;
    group(begin, end);
    begin = end;
  }
}

// The steps of one source: of its newest row that has one.
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

void AddGrowth(const JobScrape::Input& input, std::vector<Cell>* cells) {
  const std::vector<double>& growth = *input.growth;
  for (size_t i = 0; i < growth.size(); ++i) {
    const uint32_t cell = input.targets->cells[input.plan->counters[i].column];
    if (cell != kNoCell) (*cells)[cell].total += growth[i];
  }
  for (const ColumnTargets::Bucket& bucket : input.targets->buckets) {
    Cell& cell = (*cells)[bucket.cell];
    const double grown = growth[bucket.counter];
    cell.buckets[bucket.bucket].growth += grown;
    if (bucket.next != kNoCell) cell.buckets[bucket.next].growth -= grown;
    cell.values += IsValue(input.row->values[input.plan->counters[bucket.counter].column]);
  }
}

void ComputeStatsOfCell(const JobState& state, std::span<double> values, Cell* cell,
                        std::vector<double>* results) {
  cell->first_result = static_cast<uint32_t>(results->size());
  const std::vector<AggregateStat>& stats = StatsOf(state, *cell);
  ComputeStats(values, stats, results);
  if (cell->kind != Cell::Kind::kCounter) return;
  for (size_t i = 0; i < stats.size(); ++i) {
    if (stats[i].function != AggregateFunction::kSum) continue;
    (*results)[cell->first_result + i] = cell->total;
  }
}

}  // namespace

void LookAtRows(absl::Time listed_from, JobScrape* job) {
  for (const CopiedRow& row : job->rows) {
    if (row.received < listed_from) continue;
    job->last_time_ns = job->listed ? std::max(job->last_time_ns, row.time_ns) : row.time_ns;
    job->attempt = std::max(job->attempt, row.layout->attempt);
    job->listed = true;
  }
  absl::flat_hash_set<uint32_t> heard;
  for (const CopiedRow& row : job->rows) {
    const storage::SeriesSource& source = SourceOf(row);
    if (source.task && row.received >= listed_from && row.layout->attempt == job->attempt) {
      heard.insert(*source.task);
    }
    if (row.values.empty()) continue;
    if (source.task) job->tasks.insert(*source.task);
    job->hosts.insert(source.host);
    if (source.task) job->task_hosts.insert(source.host);
  }
  job->silent_tasks = static_cast<uint64_t>(std::count_if(
      heard.begin(), heard.end(), [job](uint32_t task) { return !job->tasks.contains(task); }));
  ForEachSource(*job, [job](size_t begin, size_t end) {
    IncludeStep(job->rows.subspan(begin, end - begin), job);
  });
}

void KeepNewest(JobScrape* job) {
  ForEachSource(*job, [job](size_t begin, size_t end) {
    KeepNewestOfSource(begin, end, job);
    uint32_t before = 0, now = 0;
    for (size_t i = begin; i < end; ++i) {
      before += job->plans[i]->fresh_series;
      job->plans[i]->fresh_series = CountFresh(job->rows[i]);
      now += job->plans[i]->fresh_series;
    }
    job->series += now;
    if (before > now) job->state->series_left += before - now;
  });
  for (const uint32_t task : job->state->tasks) {
    job->state->tasks_left += !job->tasks.contains(task);
  }
  job->state->tasks = job->tasks;
}

void CountValues(JobScrape* job) {
  std::vector<Cell>& cells = job->state->cells;
  for (Cell& cell : cells) cell.values = 0;
  std::vector<uint32_t> counts(cells.size());
  for (const JobScrape::Input& input : job->inputs) {
    AddGrowth(input, &cells);
    const double* value = input.row->values.data();
    for (const uint32_t cell : input.targets->cells) {
      if (cell != kNoCell) counts[cell] += IsValue(*value);
      ++value;
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) cells[i].values += counts[i];
  for (Cell& cell : cells) {
    if (cell.kind == Cell::Kind::kRate) cell.values = cells[cell.counter].values;
  }
}

void ComputeCells(JobScrape* job, std::vector<double>* scratch) {
  std::vector<Cell>& cells = job->state->cells;
  // Where the next value of each cell goes.
  std::vector<uint32_t> next(cells.size(), kNoCell);
  uint32_t end = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool has_stats =
        cells[i].kind == Cell::Kind::kGauge || cells[i].kind == Cell::Kind::kCounter;
    if (!cells[i].shown || !has_stats) continue;
    next[i] = end;
    end += cells[i].values;
  }
  scratch->resize(end);
  for (const JobScrape::Input& input : job->inputs) {
    const double* values = input.row->values.data();
    for (const uint32_t cell : input.targets->cells) {
      const double value = *values++;
      if (cell == kNoCell || next[cell] == kNoCell || !IsValue(value)) continue;
      (*scratch)[next[cell]++] = value;
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if (next[i] == kNoCell) continue;
    const std::span<double> values(scratch->data() + next[i] - cells[i].values, cells[i].values);
    ComputeStatsOfCell(*job->state, values, &cells[i], &job->results);
  }
}

const std::vector<AggregateStat>& StatsOf(const JobState& state, const Cell& cell) {
  const AggregateRule& rule = state.rules->rules[cell.rule];
  return cell.kind == Cell::Kind::kCounter ? rule.counter_stats : rule.gauge_stats;
}

size_t LinesOf(const JobState& state, const Cell& cell) {
  if (cell.values == 0 || cell.conflicts) return 0;
  switch (cell.kind) {
    case Cell::Kind::kRate:
      return 1;
    case Cell::Kind::kHistogram:
      return cell.buckets.size() + 2;
    default:
      return StatsOf(state, cell).size();
  }
}

}  // namespace tacho::server

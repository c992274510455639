// The steps of a scrape, in order: copy the rows, group them by job, find what belongs to hosts,
// compute cells, write lines. Steps that concern one job alone run for several jobs at once.
#include "server/aggregate/aggregator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "server/aggregate/job_scrape.h"
#include "server/aggregate/page_writer.h"
#include "server/aggregate/parallel.h"

namespace tacho::server::aggregate {
namespace {

void FollowCounters(storage::SeriesId known_series, JobScrape* job) {
  size_t counters = 0;
  for (const LayoutPlan* plan : job->plans) counters += plan->counters.size();
  job->growth.reserve(counters);
  for (size_t i = 0; i < job->rows.size(); ++i) {
    job->growth_of.push_back(job->growth.size());
    const CopiedRow& row = job->rows[i];
    const LayoutPlan& plan = *job->plans[i];
    if (row.values.empty() || plan.counters.empty()) continue;
    const storage::Layout& layout = *row.layout;
    // The counters of a task begin with it; those of a host may have run for months.
    const bool begins = row.source->task.has_value();
    for (const auto& [column, number] : plan.counters) {
      CounterTrack& track = job->state->tracks[number];
      const double value = row.values[column];
      double grown = 0;
      const bool late = track.seen && (row.Time(column) < track.time_ns ||
                                       (begins && layout.attempt < track.attempt));
      if (std::isfinite(value) && !late) {
        const bool reset = track.seen
                               ? value < track.last || (begins && layout.attempt != track.attempt)
                               : begins && layout.series[column]->id >= known_series;
        if (reset) {
          grown = std::max(value, 0.0);
        } else if (track.seen) {
          grown = value - track.last;
        }
        track = {value, row.Time(column), layout.attempt, true};
      }
      job->growth.push_back(grown);
    }
  }
}

void TakeOwnInputs(JobScrape* job) {
  for (size_t i = 0; i < job->rows.size(); ++i) {
    if (job->rows[i].values.empty() || job->rows[i].copy) continue;
    for (const ColumnTargets& targets : job->plans[i]->own) {
      if (!targets.used) continue;
      job->inputs.push_back(
          {&job->rows[i], job->plans[i], &targets, job->growth.data() + job->growth_of[i]});
    }
  }
}

void MarkCopies(const Aggregator::IsCopy& is_copy, std::vector<CopiedRow>* rows) {
  if (is_copy == nullptr) return;
  const storage::SeriesSource* source = nullptr;
  bool copy = false;
  for (CopiedRow& row : *rows) {  // Those of a source are adjacent.
    if (row.source != source) copy = is_copy(*row.source);
    source = row.source;
    row.copy = copy;
  }
}

}  // namespace

Aggregator::Aggregator(const storage::Store* store, AggregateRulesPtr rules, IsCopy is_copy)
    : store_(store),
      is_copy_(std::move(is_copy)),
      rules_(std::move(rules)),
      known_series_(store->Stats().next_series_id) {}

Aggregator::~Aggregator() = default;

void Aggregator::SetRules(AggregateRulesPtr rules) {
  const storage::SeriesId known = store_->Stats().next_series_id;
  absl::MutexLock lock(&mutex_);
  order_.clear();
  states_.clear();
  rules_ = std::move(rules);
  known_series_ = std::max(known_series_, known);
  order_is_old_ = true;
}

Aggregator::Jobs Aggregator::GroupByJob(std::vector<CopiedRow>* rows) {
  Jobs jobs;
  for (size_t begin = 0; begin < rows->size();) {
    const storage::JobId id = (*rows)[begin].job;
    size_t end = begin + 1;
    while (end < rows->size() && (*rows)[end].job == id) ++end;
    std::unique_ptr<JobState>& state = states_[id];
    if (state == nullptr) {
      state = std::make_unique<JobState>(id, (*rows)[begin].source->job, *rules_);
    }
    auto& job = jobs.emplace_back(std::make_unique<JobScrape>());
    job->state = state.get();
    job->rows = std::span(*rows).subspan(begin, end - begin);
    begin = end;
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return a->state->name < b->state->name; });
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i]->state->place = i;
  return jobs;
}

void Aggregator::ForgetOthers(const Jobs& jobs) {
  if (jobs.size() == states_.size()) return;
  absl::flat_hash_set<storage::JobId> there;
  for (const auto& job : jobs) there.insert(job->state->id);
  for (auto state = states_.begin(); state != states_.end();) {
    if (there.contains(state->first)) {
      ++state;
      continue;
    }
    // If it comes back, the first values of its counters are no growth.
    known_series_ = std::max(known_series_, state->second->highest_series + 1);
    order_is_old_ = true;
    states_.erase(state++);
  }
  // These pointed into states that are gone.
  for (const auto& [id, state] : states_) {
    for (const auto& [layout, plan] : state->layouts) {
      plan->bound_jobs.clear();
      plan->bound.clear();
    }
  }
}

void Aggregator::BindHosts(const Jobs& jobs) {
  const auto is_bound = [](const JobScrape& job, size_t row) {
    return !job.plans[row]->to_jobs.empty() && !job.rows[row].values.empty();
  };
  // Most often no job or one.
  using JobsHere = absl::InlinedVector<JobScrape*, 1>;
  absl::flat_hash_map<absl::string_view, JobsHere> jobs_on;
  bool jobs_are_known = false;
  for (const auto& job : jobs) {
    for (size_t i = 0; i < job->rows.size(); ++i) {
      if (!is_bound(*job, i)) continue;
      if (!std::exchange(jobs_are_known, true)) {
        for (const auto& other : jobs) {
          for (const std::string& host : other->state->present.task_hosts) {
            jobs_on[host].push_back(other.get());
          }
        }
      }
      const CopiedRow& row = job->rows[i];
      LayoutPlan* const plan = job->plans[i];
      const auto found = jobs_on.find(row.source->host);
      const JobsHere here = found == jobs_on.end() ? JobsHere() : found->second;
      const auto is_of = [](const JobScrape* other, storage::JobId id) {
        return other->state->id == id;
      };
      if (!std::equal(here.begin(), here.end(), plan->bound_jobs.begin(), plan->bound_jobs.end(),
                      is_of)) {
        plan->bound.clear();
        plan->bound_jobs.clear();
        for (JobScrape* other : here) {
          plan->bound_jobs.push_back(other->state->id);
          for (const auto& [rule, columns] : plan->to_jobs) {
            plan->bound.push_back(other->state->MakeTargets(*row.layout, *plan, rule, columns));
          }
        }
      }
      for (size_t k = 0; k < plan->bound.size(); ++k) {
        if (!plan->bound[k].used) continue;
        here[k / plan->to_jobs.size()]->inputs.push_back(
            {&row, plan, &plan->bound[k], job->growth.data() + job->growth_of[i]});
      }
    }
  }
}

// By family, job and labels. Families of one name become one object; if their types differ, the
// first stays.
void Aggregator::OrderCells() {
  for (const auto& [id, state] : states_) {
    order_is_old_ |= state->cells_changed;
  }
  if (!order_is_old_) return;
  order_.clear();
  for (const auto& [id, state] : states_) {
    for (uint32_t cell = 0; cell < state->cells.size(); ++cell) {
      order_.push_back({state.get(), cell});
    }
  }
  std::sort(order_.begin(), order_.end(), [](const CellPlace& a, const CellPlace& b) {
    const Cell& left = a.job->cells[a.cell];
    const Cell& right = b.job->cells[b.cell];
    if (left.family != right.family) {
      if (const int order = left.family->name.compare(right.family->name); order != 0) {
        return order < 0;
      }
    }
    if (a.job != b.job) return a.job->name < b.job->name;
    return std::tie(*left.labels, left.tail) < std::tie(*right.labels, right.tail);
  });
  std::shared_ptr<const CellFamily> family;
  for (const CellPlace& place : order_) {
    Cell& cell = place.job->cells[place.cell];
    if (family == nullptr || family->name != cell.family->name) family = cell.family;
    cell.conflicts = absl::string_view(family->type) != cell.family->type;
    if (!cell.conflicts) cell.family = family;
  }
  for (const auto& [id, state] : states_) state->BriefCells();
  order_is_old_ = false;
}

void Aggregator::Scrape(const ScrapeOptions& options,
                        absl::FunctionRef<bool(absl::string_view job)> visible, std::string* page) {
  absl::MutexLock lock(&mutex_);
  LatestCopy copy(*store_, options.now - options.staleness);
  MarkCopies(is_copy_, &copy.rows());
  const Jobs jobs = GroupByJob(&copy.rows());
  ForgetOthers(jobs);
  // Work that concerns one job alone is done for several jobs at once.
  const size_t threads = ScrapeThreads();
  const absl::Time listed_from = options.now - std::max(options.staleness, kJobLinger);
  const storage::SeriesId known_series = known_series_;
  ParallelFor(jobs.size(), threads, [&jobs, listed_from, known_series](size_t i) {
    JobScrape* const job = jobs[i].get();
    LookAtRows(listed_from, job);
    PlanJob(job);
    KeepNewest(job);
    FollowCounters(known_series, job);
    TakeOwnInputs(job);
  });
  BindHosts(jobs);
  OrderCells();
  ParallelFor(jobs.size(), threads, [&jobs](size_t i) { CountValues(jobs[i].get()); });
  const size_t begin = page->size();
  page->reserve(begin + page_bytes_ + page_bytes_ / 4);
  PageWriter writer(jobs, *rules_, options, visible);
  for (const CellPlace& place : order_) writer.Take(place.job->place, place.cell);
  ParallelFor(jobs.size(), threads, [&jobs](size_t i) { ComputeCells(jobs[i].get()); });
  writer.WriteJobs(page);
  writer.WriteCells(threads, page);
  writer.WriteTotals(page);
  page_bytes_ = page->size() - begin;
}

}  // namespace tacho::server::aggregate

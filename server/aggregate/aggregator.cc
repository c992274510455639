#include "server/aggregate/aggregator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "server/aggregate/job_scrape.h"
#include "server/aggregate/page_writer.h"
#include "server/aggregate/plan_source.h"

namespace tacho::server {
namespace {

const storage::Series& FirstSeries(const CopiedRow& row) { return *row.layout->series.front(); }

}  // namespace

Aggregator::Aggregator(const storage::Store* store, AggregateRulesPtr rules)
    : store_(store), rules_(std::move(rules)), known_series_(store->Stats().next_series_id) {}

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

Aggregator::Jobs Aggregator::GroupByJob(std::vector<CopiedRow>* rows,
                                        const ScrapeOptions& options) {
  std::sort(rows->begin(), rows->end(), [](const CopiedRow& a, const CopiedRow& b) {
    const storage::Series& left = FirstSeries(a);
    const storage::Series& right = FirstSeries(b);
    if (left.job_id != right.job_id) return left.job_id < right.job_id;
    if (left.source != right.source) return std::less<>()(left.source, right.source);
    return a.layout->id < b.layout->id;
  });
  const absl::Time listed_from = options.now - std::max(options.staleness, kJobLinger);
  Jobs jobs;
  for (size_t begin = 0; begin < rows->size();) {
    const storage::JobId id = FirstSeries((*rows)[begin]).job_id;
    size_t end = begin + 1;
    while (end < rows->size() && FirstSeries((*rows)[end]).job_id == id) ++end;
    std::unique_ptr<JobState>& state = states_[id];
    if (state == nullptr) {
      const std::string& name = FirstSeries((*rows)[begin]).source->job;
      state = std::make_unique<JobState>(id, name, *rules_);
    }
    auto& job = jobs.emplace_back(std::make_unique<JobScrape>());
    job->state = state.get();
    job->rows = std::span(*rows).subspan(begin, end - begin);
    LookAtRows(listed_from, job.get());
    begin = end;
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return a->state->name < b->state->name; });
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
    // Should it come back, what its counters show first is no growth.
    known_series_ = std::max(known_series_, state->second->highest_series + 1);
    order_is_old_ = true;
    states_.erase(state++);
  }
  // Places in what was forgotten.
  for (const auto& [id, state] : states_) {
    for (const auto& [layout, plan] : state->layouts) {
      plan->bound_jobs.clear();
      plan->bound.clear();
    }
  }
}

void Aggregator::PlanJob(JobScrape* job) {
  JobState& state = *job->state;
  for (const CopiedRow& row : job->rows) {
    std::unique_ptr<LayoutPlan>& plan = state.layouts[row.layout->id];
    if (plan == nullptr) plan = std::make_unique<LayoutPlan>();
    job->plans.push_back(plan.get());
  }
  for (size_t begin = 0; begin < job->rows.size();) {
    size_t end = begin + 1;
    const storage::SeriesSource* source = FirstSeries(job->rows[begin]).source;
    while (end < job->rows.size() && FirstSeries(job->rows[end]).source == source) ++end;
    PlanSource(job->rows.subspan(begin, end - begin),
               std::span(job->plans).subspan(begin, end - begin), &state);
    begin = end;
  }
}

void Aggregator::BindHosts(const Jobs& jobs) {
  absl::flat_hash_map<absl::string_view, std::vector<JobScrape*>> jobs_on;
  for (const auto& job : jobs) {
    for (const absl::string_view host : job->task_hosts) jobs_on[host].push_back(job.get());
  }
  for (const auto& job : jobs) {
    for (size_t i = 0; i < job->rows.size(); ++i) {
      const CopiedRow& row = job->rows[i];
      LayoutPlan* const plan = job->plans[i];
      if (plan->to_jobs.empty() || row.values.empty()) continue;
      const auto found = jobs_on.find(FirstSeries(row).source->host);
      std::vector<JobScrape*> here;
      if (found != jobs_on.end()) here = found->second;
      std::vector<storage::JobId> ids;
      for (const JobScrape* other : here) ids.push_back(other->state->id);
      if (ids != plan->bound_jobs) {
        plan->bound.clear();
        plan->bound_jobs = ids;
        for (JobScrape* other : here) {
          for (const auto& [rule, columns] : plan->to_jobs) {
            plan->bound.push_back(other->state->MakeTargets(*row.layout, *plan, rule, columns));
          }
        }
      }
      for (size_t k = 0; k < plan->bound.size(); ++k) {
        if (!plan->bound[k].used) continue;
        here[k / plan->to_jobs.size()]->inputs.push_back(
            {&row, plan, &plan->bound[k], &job->growth[i]});
      }
    }
  }
}

void Aggregator::FollowCounters(JobScrape* job) {
  job->growth.resize(job->rows.size());
  for (size_t i = 0; i < job->rows.size(); ++i) {
    const CopiedRow& row = job->rows[i];
    const LayoutPlan& plan = *job->plans[i];
    if (row.values.empty() || plan.counters.empty()) continue;
    const storage::Layout& layout = *row.layout;
    // The counters of a task begin with it; those of a host may have run for months.
    const bool begins = FirstSeries(row).source->task.has_value();
    std::vector<double>& growth = job->growth[i];
    growth.reserve(plan.counters.size());
    for (const auto& [column, number] : plan.counters) {
      CounterTrack& track = job->state->tracks[number];
      const double value = row.values[column];
      double grown = 0;
      const bool late = track.seen && (row.Time(column) < track.time_ns ||
                                       (begins && layout.attempt < track.attempt));
      if (std::isfinite(value) && !late) {
        const bool reset = track.seen
                               ? value < track.last || (begins && layout.attempt != track.attempt)
                               : begins && layout.series[column]->id >= known_series_;
        if (reset) {
          grown = std::max(value, 0.0);
        } else if (track.seen) {
          grown = value - track.last;
        }
        track = {value, row.Time(column), layout.attempt, true};
      }
      growth.push_back(grown);
    }
  }
}

// By family, job and labels. Families of one name become one object; of two types under one name
// the first stays.
void Aggregator::OrderCells() {
  for (const auto& [id, state] : states_) {
    order_is_old_ |= state->cells_changed;
    state->cells_changed = false;
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
    return std::tie(left.labels, left.tail) < std::tie(right.labels, right.tail);
  });
  std::shared_ptr<const CellFamily> family;
  for (const CellPlace& place : order_) {
    Cell& cell = place.job->cells[place.cell];
    if (family == nullptr || family->name != cell.family->name) family = cell.family;
    cell.conflicts = absl::string_view(family->type) != cell.family->type;
    if (!cell.conflicts) cell.family = family;
  }
  order_is_old_ = false;
}

void Aggregator::Scrape(const ScrapeOptions& options,
                        absl::FunctionRef<bool(absl::string_view job)> visible, std::string* page) {
  absl::MutexLock lock(&mutex_);
  LatestCopy copy(*store_, options.now - options.staleness);
  const Jobs jobs = GroupByJob(&copy.rows(), options);
  ForgetOthers(jobs);
  for (const auto& job : jobs) {
    PlanJob(job.get());
    KeepNewest(job.get());
    FollowCounters(job.get());
    for (size_t i = 0; i < job->rows.size(); ++i) {
      if (job->rows[i].values.empty()) continue;
      for (const ColumnTargets& targets : job->plans[i]->own) {
        if (!targets.used) continue;
        job->inputs.push_back({&job->rows[i], job->plans[i], &targets, &job->growth[i]});
      }
    }
  }
  BindHosts(jobs);
  for (const auto& job : jobs) CountValues(job.get());
  OrderCells();
  absl::flat_hash_map<const JobState*, JobScrape*> scrape_of;
  for (const auto& job : jobs) scrape_of[job->state] = job.get();
  PageWriter writer(jobs, *rules_, options, visible);
  std::vector<std::pair<JobScrape*, Cell*>> shown;
  for (const CellPlace& place : order_) {
    JobScrape* const job = scrape_of[place.job];
    Cell& cell = place.job->cells[place.cell];
    cell.shown = writer.Take(job, cell);
    if (cell.shown) shown.emplace_back(job, &cell);
  }
  std::vector<double> scratch;
  for (const auto& job : jobs) ComputeCells(job.get(), &scratch);
  writer.WriteJobs(page);
  for (const auto& [job, cell] : shown) writer.WriteCell(job, cell, page);
  writer.WriteTotals(page);
}

}  // namespace tacho::server

#include "server/aggregate/job_aggregates.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tacho::server {
namespace {

struct Newest {
  storage::SeriesId series = 0;
  int64_t time_ns = 0;
  double value = 0;
};

struct MetricValues {
  std::shared_ptr<const storage::Metric> metric;
  std::vector<Newest> values;
};

// A task of a host: what has a step of its own.
using Worker = std::pair<std::optional<uint32_t>, std::string>;

struct JobRows {
  std::shared_ptr<const std::string> job;
  uint32_t attempt = 0;
  int64_t last_time_ns = INT64_MIN;
  absl::flat_hash_set<uint32_t> tasks;
  absl::flat_hash_set<std::string> hosts;
  // Time and step of each worker's newest row that has a step.
  absl::flat_hash_map<Worker, std::pair<int64_t, int64_t>> steps;
  absl::flat_hash_map<storage::MetricId, MetricValues> metrics;
};

// Takes rows one at a time, as the store shows them.
class RowCollector {
 public:
  RowCollector(absl::Time now, absl::Duration staleness)
      : fresh_from_(now - staleness), listed_from_(now - std::max(staleness, kJobLinger)) {}

  void Add(const storage::LatestRow& row) {
    if (row.received < listed_from_) return;
    const storage::Series& series = *row.layout->series.front();
    JobRows& job = jobs_[series.job_id];
    if (job.job == nullptr) job.job = {row.layout, &series.source->job};
    job.attempt = std::max(job.attempt, row.layout->attempt);
    job.last_time_ns = std::max(job.last_time_ns, row.time_ns);
    if (row.received < fresh_from_) return;
    AddSource(series, row, &job);
    AddValues(row, &job);
  }

  const absl::flat_hash_map<storage::JobId, JobRows>& jobs() const { return jobs_; }

 private:
  static void AddSource(const storage::Series& series, const storage::LatestRow& row,
                        JobRows* job) {
    if (series.source->task.has_value()) job->tasks.insert(*series.source->task);
    job->hosts.insert(series.source->host);
    if (row.step == storage::kNoStep) return;
    auto& [time_ns, step] =
        job->steps
            .try_emplace(Worker(series.source->task, series.source->host), row.time_ns, row.step)
            .first->second;
    if (row.time_ns > time_ns) std::tie(time_ns, step) = std::tie(row.time_ns, row.step);
  }

  void AddValues(const storage::LatestRow& row, JobRows* job) const {
    for (size_t i = 0; i < row.values.size(); ++i) {
      if (row.Received(i) < fresh_from_) continue;
      const storage::Series& series = *row.layout->series[i];
      if (series.metric->type == storage::MetricType::kHistogram) continue;
      MetricValues& metric = job->metrics[series.metric_id];
      if (metric.metric == nullptr) metric.metric = {row.layout, series.metric};
      metric.values.push_back({series.id, row.Time(i), row.values[i]});
    }
  }

  const absl::Time fresh_from_;
  const absl::Time listed_from_;
  absl::flat_hash_map<storage::JobId, JobRows> jobs_;
};

// One value a series, its newest, unless that is "no value".
std::vector<double> NewestValues(std::vector<Newest> all) {
  std::sort(all.begin(), all.end(), [](const Newest& a, const Newest& b) {
    return std::tie(a.series, a.time_ns) < std::tie(b.series, b.time_ns);
  });
  std::vector<double> values;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size() && all[i + 1].series == all[i].series) continue;
    if (std::bit_cast<uint64_t>(all[i].value) == storage::kStaleMarkerBits) continue;
    values.push_back(all[i].value);
  }
  return values;
}

JobAggregate Aggregate(const JobRows& rows) {
  JobAggregate job;
  job.job = rows.job;
  job.tasks = rows.tasks.size();
  job.hosts = rows.hosts.size();
  job.attempt = rows.attempt;
  job.last_time_ns = rows.last_time_ns;
  for (const auto& [worker, newest] : rows.steps) {
    job.last_step_max = std::max(newest.second, job.last_step_max.value_or(newest.second));
    job.last_step_min = std::min(newest.second, job.last_step_min.value_or(newest.second));
  }
  for (const auto& [id, metric] : rows.metrics) {
    std::vector<double> values = NewestValues(metric.values);
    if (!values.empty()) job.metrics.push_back({metric.metric, Summarize(std::move(values))});
  }
  std::sort(job.metrics.begin(), job.metrics.end(),
            [](const auto& a, const auto& b) { return a.metric->name < b.metric->name; });
  return job;
}

}  // namespace

std::vector<JobAggregate> AggregateJobs(const storage::Store& store, absl::Time now,
                                        absl::Duration staleness) {
  RowCollector collector(now, staleness);
  store.VisitLatestRows([&](const storage::LatestRow& row) { collector.Add(row); });
  std::vector<JobAggregate> jobs;
  for (const auto& [id, rows] : collector.jobs()) jobs.push_back(Aggregate(rows));
  std::sort(jobs.begin(), jobs.end(),
            [](const JobAggregate& a, const JobAggregate& b) { return *a.job < *b.job; });
  return jobs;
}

}  // namespace tacho::server

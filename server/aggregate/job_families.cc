#include "server/aggregate/job_families.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/aggregate/exposition_name.h"

namespace tacho::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Label = ClientMetric::Label;

struct Stat {
  const char* name;
  double value;
};

std::vector<Stat> StatsOf(const Summary& summary, bool counter) {
  std::vector<Stat> stats = {{"sum", summary.sum}, {"min", summary.min}, {"max", summary.max}};
  if (counter) return stats;
  stats.insert(stats.end(), {{"avg", summary.avg},
                             {"p50", summary.p50},
                             {"p90", summary.p90},
                             {"p99", summary.p99},
                             {"count", static_cast<double>(summary.count)},
                             {"non_finite", static_cast<double>(summary.non_finite)}});
  return stats;
}

// Families under construction; counts what no longer fits.
class Page {
 public:
  explicit Page(size_t max_series) : max_series_(max_series) {}

  bool Fits(size_t lines) {
    if (made_ + lines <= max_series_) return true;
    left_out_ += lines;
    return false;
  }

  void Add(const std::string& name, const std::string& help, MetricType type,
           std::vector<Label> labels, double value) {
    MetricFamily& family = families_[name];
    if (family.metric.empty()) {
      family.name = name;
      family.help = help;
      family.type = type;
    }
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    ++made_;
  }

  std::vector<MetricFamily> Take() {
    const size_t left_out = left_out_;
    Add("tacho_aggregate_series_left_out",
        "Aggregates that metrics.max_series kept from this scrape.", MetricType::Gauge, {},
        static_cast<double>(left_out));
    std::vector<MetricFamily> taken;
    for (auto& [name, family] : families_) taken.push_back(std::move(family));
    return taken;
  }

 private:
  const size_t max_series_;
  size_t made_ = 0;
  size_t left_out_ = 0;
  std::map<std::string, MetricFamily> families_;
};

void AddJob(const JobAggregate& job, Page* page) {
  if (!page->Fits(job.last_step_max.has_value() ? 6 : 4)) return;
  const Label label{"job", *job.job};
  const auto gauge = [&](const char* name, const char* help, double value) {
    page->Add(name, help, MetricType::Gauge, {label}, value);
  };
  gauge("tacho_job_tasks", "Tasks of the job that report now.", static_cast<double>(job.tasks));
  gauge("tacho_job_hosts", "Hosts of the job that report now.", static_cast<double>(job.hosts));
  gauge("tacho_job_attempt", "Newest attempt of the job, from 0.", job.attempt);
  gauge("tacho_job_last_seen_timestamp_seconds", "Time of the job's newest row.",
        static_cast<double>(job.last_time_ns) / 1e9);
  if (!job.last_step_max.has_value()) return;
  constexpr char kHelp[] = "Highest (stat=max) and lowest (min) newest step of the job's tasks.";
  page->Add("tacho_job_last_step", kHelp, MetricType::Gauge, {label, {"stat", "max"}},
            static_cast<double>(*job.last_step_max));
  page->Add("tacho_job_last_step", kHelp, MetricType::Gauge, {label, {"stat", "min"}},
            static_cast<double>(*job.last_step_min));
}

// Escaped here: prometheus-cpp writes a help text as it is.
std::string HelpOf(const storage::Metric& metric) {
  std::string help =
      metric.help.empty() ? absl::StrCat("Metric ", metric.name, " of a job.") : metric.help;
  if (!metric.unit.empty()) absl::StrAppend(&help, " Unit: ", metric.unit, ".");
  return absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}});
}

void AddMetric(const Label& job, const MetricAggregate& aggregate, Page* page) {
  const storage::Metric& metric = *aggregate.metric;
  const bool counter = metric.type == storage::MetricType::kCounter;
  const std::vector<Stat> stats = StatsOf(aggregate.summary, counter);
  if (!page->Fits(stats.size())) return;
  const ExpositionName name = ExpositionNameOf(metric.name, metric.type);
  for (const Stat& stat : stats) {
    std::vector<Label> labels = {job, {"stat", stat.name}};
    if (!name.metric_label.empty()) labels.push_back({"metric", name.metric_label});
    page->Add(name.family, HelpOf(metric), counter ? MetricType::Counter : MetricType::Gauge,
              std::move(labels), stat.value);
  }
}

}  // namespace

std::vector<MetricFamily> JobFamilies(const std::vector<JobAggregate>& jobs, size_t max_series) {
  Page page(max_series);
  for (const JobAggregate& job : jobs) AddJob(job, &page);
  for (const JobAggregate& job : jobs) {
    for (const MetricAggregate& metric : job.metrics) AddMetric({"job", *job.job}, metric, &page);
  }
  return page.Take();
}

}  // namespace tacho::server

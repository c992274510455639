#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cost/cost_board.h"
#include "server/goodput/goodput_bucket.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::cost {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = std::vector<ClientMetric::Label>;

void AddEnergy(const JobCost& job, const Labels& labels, metrics::SectionFamilies* families) {
  if (!job.inputs.energy.has_value()) return;
  const Energy energy = job.inputs.energy->total();
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    const auto bucket = goodput::GoodputBucketName(static_cast<goodput::GoodputBucket>(i));
    Labels of_bucket = labels;
    of_bucket.push_back({"bucket", std::string(bucket)});
    families->Add("tacho_job_energy_joules", std::move(of_bucket), energy.joules[i]);
  }
  if (energy.due_ns > 0) {
    families->Add("tacho_job_energy_covered_ratio", labels, energy.covered_ns / energy.due_ns);
  }
}

void AddJob(const JobCost& job, metrics::SectionFamilies* families) {
  const Labels labels = {{"job", job.job}};
  AddEnergy(job, labels, families);
  families->Add("tacho_job_chip_seconds", labels, job.chip_seconds);
  if (!job.cost.has_value()) return;
  Labels money = labels;
  money.push_back({"currency", job.currency});
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    const auto bucket = goodput::GoodputBucketName(static_cast<goodput::GoodputBucket>(i));
    for (const auto& [of, amount] :
         {std::pair("chips", job.buckets[i].chip_cost), {"energy", job.buckets[i].energy_cost}}) {
      Labels line = money;
      line.push_back({"bucket", std::string(bucket)});
      line.push_back({"of", of});
      families->Add("tacho_job_cost", std::move(line), amount);
    }
  }
  families->Add("tacho_job_chip_seconds_not_priced", labels, job.chip_seconds_not_priced);
  families->Add("tacho_job_cost_per_step", money, job.cost_per_step);
  families->Add("tacho_job_cost_per_million_tokens", money, job.cost_per_million_tokens);
  families->Add("tacho_job_cost_per_accuracy_point", money, job.cost_per_accuracy_point);
}

}  // namespace

std::vector<MetricFamily> CostFamilies(const std::vector<std::shared_ptr<const JobCost>>& jobs,
                                       const goodput::JobRoundsStats& stats) {
  metrics::SectionFamilies families(metrics::kCostMetrics);
  for (const auto& job : jobs) AddJob(*job, &families);
  families.Add("tacho_cost_jobs", {}, static_cast<double>(stats.jobs));
  families.Add("tacho_cost_made_total", {}, static_cast<double>(stats.made));
  families.Add("tacho_cost_failures_total", {}, static_cast<double>(stats.failed));
  families.Add("tacho_cost_compute_seconds_total", {}, stats.seconds);
  families.Add("tacho_cost_oldest_seconds", {}, stats.oldest_seconds);
  return families.Take();
}

}  // namespace tacho::server::cost

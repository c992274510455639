#include "server/goodput/goodput_families.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::goodput {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = std::vector<ClientMetric::Label>;

// Longer values of the labels of tacho_job_info are cut.
constexpr size_t kMaxLabelBytes = 200;
// The worst hosts of a job have lines of their losses.
constexpr size_t kMaxHostLosses = 10;

void AddInfo(const JobGoodput& job, metrics::SectionFamilies* families) {
  Labels labels = {{"job", job.job}, {"attempt", absl::StrCat(job.attempt)}};
  for (const char* key : {"model", "batch_size", "device_kind", "device_count", "source_revision",
                          "config_fingerprint"}) {
    const auto found = job.attributes.find(key);
    labels.push_back(
        {key, found == job.attributes.end() ? "" : found->second.substr(0, kMaxLabelBytes)});
  }
  families->Add("tacho_job_info", std::move(labels), 1);
}

// Returns how many lines.
size_t AddHosts(const JobGoodput& job, metrics::SectionFamilies* families) {
  for (const std::string& host : job.hosts) {
    families->Add("tacho_job_host_info", {{"job", job.job}, {"host", host}}, 1);
  }
  return job.hosts.size();
}

void AddLosses(const JobGoodput& job, metrics::SectionFamilies* families) {
  if (job.loss_judged_steps == 0) return;
  families->Add("tacho_job_lost_to_hosts_seconds", {{"job", job.job}}, job.lost_seconds);
  const size_t shown = std::min(job.losing_hosts.size(), kMaxHostLosses);
  for (size_t i = 0; i < shown; ++i) {
    const JobGoodput::Losing& losing = job.losing_hosts[i];
    for (size_t reason = 0; reason < kLossReasons; ++reason) {
      if (losing.seconds[reason] <= 0) continue;
      const auto name = std::string(LossReasonName(static_cast<LossReason>(reason)));
      families->Add("tacho_job_host_lost_seconds",
                    {{"job", job.job}, {"host", losing.host}, {"reason", name}},
                    losing.seconds[reason]);
    }
  }
}

void AddJob(const BoardGoodput& job, metrics::SectionFamilies* families) {
  const ClientMetric::Label label{"job", job.job};
  for (size_t i = 0; i < kGoodputBuckets; ++i) {
    const auto bucket = std::string(GoodputBucketName(static_cast<GoodputBucket>(i)));
    families->Add("tacho_job_goodput_seconds_total", {label, {"bucket", bucket}},
                  static_cast<double>(job.most_ns[i]) / 1e9);
  }
  families->Add("tacho_job_wall_seconds_total", {label},
                static_cast<double>(job.most_wall_ns) / 1e9);
  families->Add("tacho_job_goodput_ratio", {label}, GoodputRatio(job.total));
  const StepFigures& steps = job.steps;
  families->Add("tacho_job_mfu_ratio", {label}, steps.mfu);
  families->Add("tacho_job_tokens_per_second", {label}, steps.tokens_per_second);
  if (steps.median.has_value()) {
    ClientMetric::Summary times;
    times.sample_count = steps.sampled;
    times.sample_sum = *steps.mean * static_cast<double>(steps.sampled);
    times.quantile = {{0.5, *steps.median}, {0.9, *steps.p90}, {0.99, *steps.p99}};
    families->AddSummary("tacho_job_step_time_seconds", {label}, times);
  }
  if (steps.planned_steps.has_value()) {
    families->Add("tacho_job_planned_steps", {label}, static_cast<double>(*steps.planned_steps));
  }
  families->Add("tacho_job_progress_ratio", {label}, steps.progress);
  families->Add("tacho_job_remaining_seconds", {label}, steps.remaining_seconds);
  AddLosses(job, families);
  AddInfo(job, families);
}

}  // namespace

std::vector<MetricFamily> GoodputFamilies(
    const std::vector<std::shared_ptr<const BoardGoodput>>& jobs, const JobRoundsStats& stats,
    size_t max_host_lines) {
  metrics::SectionFamilies families(metrics::kGoodputMetrics);
  size_t left_out = 0;
  for (const auto& job : jobs) {
    AddJob(*job, &families);
    if (job->hosts.size() > max_host_lines) {
      left_out += job->hosts.size();
    } else {
      max_host_lines -= AddHosts(*job, &families);
    }
  }
  families.Add("tacho_job_host_lines_left_out", {}, static_cast<double>(left_out));
  families.Add("tacho_goodput_jobs", {}, static_cast<double>(stats.jobs));
  families.Add("tacho_goodput_jobs_left_out", {}, static_cast<double>(stats.jobs_left_out));
  families.Add("tacho_goodput_ledgers_total", {}, static_cast<double>(stats.made));
  families.Add("tacho_goodput_failures_total", {}, static_cast<double>(stats.failed));
  families.Add("tacho_goodput_compute_seconds_total", {}, stats.seconds);
  families.Add("tacho_goodput_oldest_seconds", {}, stats.oldest_seconds);
  return families.Take();
}

}  // namespace tacho::server::goodput

// SeriesIndex::Cardinality().
#include "storage/index/cardinality.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/base/status_macros.h"
#include "storage/index/series_index.h"

namespace tacho::storage {
namespace {

template <typename T, typename Size>
void KeepLargest(size_t top, Size size, std::vector<T>* all) {
  const auto larger = [&](const T& a, const T& b) { return size(a) > size(b); };
  if (all->size() > top) {
    std::nth_element(all->begin(), all->begin() + static_cast<ptrdiff_t>(top), all->end(), larger);
    all->resize(top);
  }
  std::stable_sort(all->begin(), all->end(), larger);
}

}  // namespace

absl::StatusOr<CardinalityReport> SeriesIndex::Cardinality(absl::string_view job, size_t top) {
  const std::shared_ptr<const LimitPolicy> policy = limits();
  CardinalityReport report;
  std::vector<CatalogPtr> catalogs;
  if (!job.empty()) {
    TACHO_ASSIGN_OR_RETURN(const auto catalog, AcquireNamed(job));
    if (catalog == nullptr) return absl::NotFoundError("there is no such job");
  }
  {
    absl::ReaderMutexLock lock(&mutex_);
    const TotalLimits& totals = policy->totals();
    report.totals = {{Limit::kSeries, series_in_memory_, totals.series},
                     {Limit::kStoredSeries, series_, totals.stored_series},
                     {Limit::kJobs, jobs_.size(), totals.jobs},
                     {Limit::kTextBytes, text_bytes_, totals.text_bytes}};
    for (const auto& [id, known] : jobs_) {
      if (!job.empty() && known->name != job) continue;
      report.jobs.push_back(
          {.name = known->name, .series = known->series, .in_memory = known->catalog != nullptr});
      if (known->catalog == nullptr) ++report.jobs_left_out;
      if (known->catalog != nullptr) catalogs.push_back(known->catalog);
    }
  }
  KeepLargest(
      top, [](const auto& one) { return one.series; }, &report.jobs);
  for (auto& one : report.jobs) {
    one.bound =
        policy->OfRule(LimitPolicy::OfJob(policy.get(), one.name).RuleOf("")).series_per_job;
  }
  for (const CatalogPtr& catalog : catalogs) {
    AddCardinality(*catalog, *policy, top, &report);
    KeepLargest(
        top, [](const auto& one) { return one.series; }, &report.metrics);
    KeepLargest(
        top, [](const auto& one) { return one.values; }, &report.labels);
  }
  return report;
}

void SeriesIndex::AddCardinality(const JobCatalog& catalog, const LimitPolicy& policy, size_t top,
                                 CardinalityReport* report) const {
  std::vector<CardinalityReport::MetricUse> metrics;
  std::vector<CardinalityReport::LabelUse> labels;
  {
    std::vector<const JobCatalog::MetricEntry*> entries;
    absl::ReaderMutexLock lock(&mutex_);
    for (const auto& entry : catalog.metrics()) entries.push_back(&entry);
    KeepLargest(
        top, [](const auto* entry) { return entry->counted(); }, &entries);
    for (const auto* entry : entries) {
      metrics.push_back({.metric = entry->metric.name,
                         .series = entry->counted(),
                         .overflow_series = entry->overflow});
    }
    for (const auto& [name, values] : catalog.label_keys()) {
      if (name == kOverflowLabel) continue;
      labels.push_back({.name = std::string(name), .values = values});
      // Keys are as many as a sender likes.
      if (labels.size() > 2 * top) {
        KeepLargest(
            top, [](const auto& one) { return one.values; }, &labels);
      }
    }
  }
  LimitPolicy::OfJob rules(&policy, catalog.name());
  for (auto& one : metrics) {
    one.job = catalog.name();
    one.bound = policy.OfRule(rules.RuleOf(one.metric)).series_per_metric;
  }
  for (auto& one : labels) {
    one.job = catalog.name();
    one.bound = policy.OfRule(rules.RuleOf("")).values_per_label;
  }
  report->metrics.insert(report->metrics.end(), std::make_move_iterator(metrics.begin()),
                         std::make_move_iterator(metrics.end()));
  report->labels.insert(report->labels.end(), std::make_move_iterator(labels.begin()),
                        std::make_move_iterator(labels.end()));
}

}  // namespace tacho::storage

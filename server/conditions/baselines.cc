#include "server/conditions/baselines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/quantile.h"

namespace tacho::server::conditions {
namespace {

constexpr char kFingerprint[] = "config_fingerprint";
constexpr size_t kMaxBaselineSeries = 1'000'000;
constexpr size_t kMaxRemembered = 10'000;

bool ComesFirst(const storage::SeriesPtr& a, const storage::SeriesPtr& b) {
  return std::make_pair(a->source->task, a->id) < std::make_pair(b->source->task, b->id);
}

}  // namespace

void Baselines::Note(const std::string& job, uint32_t attempt, const std::string& fingerprint) {
  if (fingerprint.empty()) {
    jobs_.erase(job);
  } else if (jobs_.size() < kMaxRemembered || jobs_.contains(job)) {
    jobs_[job] = {attempt, fingerprint};
  }
}

void Baselines::LookAtStore() {
  if (std::exchange(looked_, true)) return;
  auto jobs = store_->Jobs();
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.extent.last_time_ns > b.extent.last_time_ns;
  });
  if (jobs.size() > kMaxJobsLookedAt) jobs.resize(kMaxJobsLookedAt);
  for (const auto& job : jobs) {
    const auto outline = store_->Outline(job.name, /*hosts=*/false);
    if (!outline.ok() || !outline->attempt || jobs_.contains(job.name)) continue;
    const auto found = outline->attributes.find(kFingerprint);
    if (found != outline->attributes.end()) Note(job.name, *outline->attempt, found->second);
  }
}

std::vector<Baseline> Baselines::Of(const std::string& job, uint32_t attempt,
                                    const std::string& fingerprint, const SignalNames& names) {
  std::vector<Baseline> all;
  const auto add = [&](const std::string& other, uint32_t number) {
    if (all.size() >= kMaxBaselines) return;
    const Baseline found = Measure(other, number, names);
    if (found.steps > 0) all.push_back(found);
  };
  if (const auto attempts = store_->Attempts(job); attempts.ok()) {
    for (auto it = attempts->rbegin(); it != attempts->rend(); ++it) {
      if (it->attempt < attempt) add(job, it->attempt);
    }
  }
  if (fingerprint.empty()) return all;
  LookAtStore();
  for (const auto& [other, known] : jobs_) {
    if (other != job && known.fingerprint == fingerprint) add(other, known.attempt);
  }
  return all;
}

Baseline Baselines::Measure(const std::string& job, uint32_t attempt, const SignalNames& names) {
  const auto known = measured_.find({job, attempt});
  if (known != measured_.end()) return known->second;
  Baseline baseline;
  baseline.job = job;
  baseline.attempt = attempt;
  storage::Selector selector;
  selector.job = job;
  auto series = store_->FindSeries(selector, kMaxBaselineSeries);
  if (!series.ok()) return baseline;
  std::erase_if(*series, [&](const auto& one) {
    const auto match = names.Find(one->metric->name);
    return !match || match->signal != Signal::kStepTime;
  });
  if (series->empty()) return baseline;
  const storage::SeriesPtr first = *std::min_element(series->begin(), series->end(), ComesFirst);
  const double factor = names.Find(first->metric->name)->factor;
  storage::ReadOptions options;
  options.attempt = attempt;
  options.read_once = true;
  const auto reader = store_->Read(first, options);
  storage::Chunk chunk;
  std::vector<double> seconds;
  while (seconds.size() < kMaxSteps) {
    const auto more = reader->Next({}, &chunk);
    if (!more.ok() || !*more) break;
    for (const double value : chunk.samples().columns.values) {
      if (std::isfinite(value) && value > 0) seconds.push_back(value * factor);
    }
  }
  baseline.steps = seconds.size();
  if (!seconds.empty()) baseline.step_time_median = UpperMedian(std::move(seconds));
  if (measured_.size() >= kMaxRemembered) measured_.clear();
  measured_[{job, attempt}] = baseline;
  return baseline;
}

}  // namespace tacho::server::conditions

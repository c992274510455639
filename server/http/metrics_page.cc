#include "server/http/metrics_page.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "server/aggregate/parallel.h"
#include "server/http/families.h"
#include "server/http/family_text.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::http {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

void Append(Families families, Families* all) {
  all->insert(all->end(), std::make_move_iterator(families.begin()),
              std::make_move_iterator(families.end()));
}

// Every family that has the label, whoever made it.
void LeaveOutJobs(absl::FunctionRef<bool(absl::string_view job)> is_shown, Families* all) {
  absl::flat_hash_map<std::string, bool> visible;
  const auto is_hidden = [&](const prometheus::ClientMetric& metric) {
    for (const auto& label : metric.label) {
      if (label.name != "job") continue;
      const auto [seen, is_new] = visible.try_emplace(label.value, false);
      if (is_new) seen->second = is_shown(label.value);
      return !seen->second;
    }
    return false;
  };
  for (auto& family : *all) std::erase_if(family.metric, is_hidden);
  std::erase_if(*all, [](const auto& family) { return family.metric.empty(); });
}

aggregate::AggregateRulesPtr RulesOf(const config::v1::Collector::Metrics& config) {
  auto rules = aggregate::MakeAggregateRules(config);
  // The start of the collector has checked them.
  return rules.ok() ? *std::move(rules) : std::make_shared<const aggregate::AggregateRules>();
}

bool HaveSameRules(const config::v1::Collector::Metrics& a,
                   const config::v1::Collector::Metrics& b) {
  config::v1::Collector::Metrics left, right;
  *left.mutable_rules() = a.rules();
  *right.mutable_rules() = b.rules();
  return a.built_in_rules() == b.built_in_rules() &&
         left.SerializeAsString() == right.SerializeAsString();
}

prometheus::MetricFamily BuildInfo() {
  prometheus::MetricFamily info = metrics::EmptyFamily("tacho_build_info");
  metrics::AddLine({{"version", TACHO_VERSION}}, 1, &info);
  return info;
}

Families LogFamilies(const log::LogCounts& counts) {
  prometheus::MetricFamily lines = metrics::EmptyFamily("tacho_log_lines_total");
  for (const auto level :
       {log::Level::kDebug, log::Level::kInfo, log::Level::kWarn, log::Level::kError}) {
    metrics::AddLine({{"level", std::string(log::NameOf(level))}},
                     static_cast<double>(counts.lines[static_cast<int>(level)]), &lines);
  }
  return {std::move(lines),
          metrics::OneLine("tacho_log_lines_left_out_total", static_cast<double>(counts.left_out))};
}

}  // namespace

MetricsPage::MetricsPage(MetricsPageOptions options)
    : options_(std::move(options)),
      limits_(options_.options),
      aggregator_(options_.store, RulesOf(options_.options), options_.is_copy) {
  TACHO_CHECK(options_.store != nullptr);
}

config::v1::Collector::Metrics MetricsPage::limits() const {
  absl::MutexLock lock(&mutex_);
  return limits_;
}

absl::StatusOr<std::function<void()>> MetricsPage::Prepare(const config::v1::Collector& config) {
  auto rules = aggregate::MakeAggregateRules(config.metrics());
  if (!rules.ok()) return rules.status();
  return [this, limits = config.metrics(), rules = *std::move(rules)] {
    absl::MutexLock lock(&mutex_);
    // New rules restart the counters, so equal ones are not set again.
    if (!HaveSameRules(limits, limits_)) aggregator_.SetRules(rules);
    limits_ = limits;
  };
}

bool MetricsPage::Shows(absl::string_view job, const security::Rights& rights) const {
  return rights.MayTouch(job) && (options_.shows == nullptr || options_.shows(job));
}

std::string MetricsPage::RenderOthers(const security::Rights& rights, size_t max_lines) const {
  Families all;
  if (options_.registry != nullptr) Append(options_.registry->Collect(), &all);
  Append(StoreFamilies(options_.store->Stats()), &all);
  Append(LimitFamilies(*options_.store), &all);
  Append(HealthFamilies(options_.readiness, options_.storage_path), &all);
  Append(ProcessFamilies(), &all);
  Append(LogFamilies(options_.log.counts()), &all);
  all.push_back(BuildInfo());
  for (const auto& other : options_.others) Append(other(max_lines), &all);
  const bool shows_all = rights.SeesEveryJob() && options_.shows == nullptr;
  if (!shows_all) LeaveOutJobs([&](absl::string_view job) { return Shows(job, rights); }, &all);
  std::string text;
  AppendFamilies(all, &text);
  return text;
}

std::string MetricsPage::Render(const security::Rights& rights) const {
  const absl::Time began = MonotonicNow();
  const config::v1::Collector::Metrics limits = this->limits();
  std::string page, others;
  const auto part = [&](size_t number) {
    if (number == 1) {
      others = RenderOthers(rights, limits.max_series());
      return;
    }
    aggregator_.Scrape(
        {options_.now(), absl::Nanoseconds(limits.staleness()), limits.max_series()},
        [&](absl::string_view job) { return Shows(job, rights); }, &page);
  };
  aggregate::ParallelFor(2, aggregate::ScrapeThreads(), part);
  page += others;
  const Families took = {metrics::OneLine("tacho_scrape_collect_seconds",
                                          absl::ToDoubleSeconds(MonotonicNow() - began))};
  AppendFamilies(took, &page);
  return page;
}

}  // namespace tacho::server::http

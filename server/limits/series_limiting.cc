// Limits on series: from the configuration to the store's policy, and the counters of what they
// did.
#include "server/limits/series_limiting.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/metrics/metric_families.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::limits {
namespace {

using storage::LimitAction;

LimitAction ActionOf(const std::string& name) {
  if (name == "fold") return LimitAction::kFold;
  return name == "observe" ? LimitAction::kObserve : LimitAction::kReject;
}

storage::SeriesLimits OutsideOfRules(const config::v1::Limits& config) {
  storage::SeriesLimits limits;
  limits.series_per_job = config.series_per_job();
  limits.series_per_metric = config.series_per_metric();
  limits.values_per_label = config.values_per_label();
  limits.overflow_series_per_job = config.overflow_series_per_job();
  limits.labels_per_series = config.labels_per_series();
  limits.metric_name_bytes = config.metric_name_bytes();
  limits.label_name_bytes = config.label_name_bytes();
  limits.label_value_bytes = config.label_value_bytes();
  limits.allowed_labels.assign(config.allowed_labels().begin(), config.allowed_labels().end());
  limits.action = ActionOf(config.action());
  return limits;
}

// A number that a rule leaves out is -1.
template <typename Number, typename Limit>
void Set(Number number, Limit* limit) {
  if (number >= 0) *limit = static_cast<Limit>(number);
}

storage::LimitRule RuleOf(const config::v1::Limits::Rule& rule,
                          const storage::SeriesLimits& outside) {
  storage::LimitRule result{rule.job(), rule.metric(), outside};
  storage::SeriesLimits& limits = result.limits;
  Set(rule.series_per_job(), &limits.series_per_job);
  Set(rule.series_per_metric(), &limits.series_per_metric);
  Set(rule.values_per_label(), &limits.values_per_label);
  Set(rule.overflow_series_per_job(), &limits.overflow_series_per_job);
  Set(rule.labels_per_series(), &limits.labels_per_series);
  Set(rule.metric_name_bytes(), &limits.metric_name_bytes);
  Set(rule.label_name_bytes(), &limits.label_name_bytes);
  Set(rule.label_value_bytes(), &limits.label_value_bytes);
  if (rule.allowed_labels_size() > 0) {
    limits.allowed_labels.assign(rule.allowed_labels().begin(), rule.allowed_labels().end());
  }
  if (!rule.action().empty()) limits.action = ActionOf(rule.action());
  return result;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const storage::LimitPolicy>> MakeLimitPolicy(
    const config::v1::Limits& config) {
  storage::LimitPolicy::Options options;
  options.totals = {.jobs = config.jobs(),
                    .series = config.series(),
                    .stored_series = config.stored_series(),
                    .text_bytes = config.text_bytes(),
                    .layout_columns_per_job = config.layout_columns_per_job(),
                    .action = ActionOf(config.total_action())};
  options.series = OutsideOfRules(config);
  for (const auto& rule : config.rules()) options.rules.push_back(RuleOf(rule, options.series));
  auto policy = storage::LimitPolicy::Create(std::move(options));
  if (policy.ok()) return policy;
  return absl::InvalidArgumentError(absl::StrCat("limits.", policy.status().message()));
}

SeriesLimiting::SeriesLimiting(storage::Store* store, prometheus::Registry* registry,
                               const config::v1::Limits& config)
    : store_(store),
      definitions_per_second_(config.definitions_per_second()),
      definitions_burst_ns_(config.definitions_burst()) {
  auto& family = metrics::CounterFamily(registry, "tacho_limit_series_total");
  for (size_t limit = 0; limit < storage::kLimits; ++limit) {
    for (size_t action = 0; action < kActions; ++action) {
      counters_[limit][action] = &family.Add(
          {{"limit", std::string(storage::LimitKey(static_cast<storage::Limit>(limit)))},
           {"action",
            std::string(storage::ActionName(static_cast<storage::LimitAction>(action)))}});
    }
  }
}

void SeriesLimiting::Count(Refusals refusals) {
  TACHO_CHECK(static_cast<size_t>(refusals.limit) < storage::kLimits);
  TACHO_CHECK(static_cast<size_t>(refusals.action) < kActions);
  counters_[static_cast<size_t>(refusals.limit)][static_cast<size_t>(refusals.action)]->Increment(
      static_cast<double>(refusals.series));
  ledger_.Add(std::move(refusals));
}

absl::StatusOr<std::function<void()>> SeriesLimiting::Prepare(const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto policy, MakeLimitPolicy(config.limits()));
  return std::function<void()>([this, policy = std::move(policy),
                                per_second = config.limits().definitions_per_second(),
                                burst_ns = config.limits().definitions_burst()] {
    store_->SetLimits(policy);
    definitions_per_second_ = per_second;
    definitions_burst_ns_ = burst_ns;
  });
}

}  // namespace tacho::server::limits

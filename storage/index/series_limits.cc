#include "storage/index/series_limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "re2/re2.h"

namespace tacho::storage {
namespace {

// Expressions come from the operator, but one that needs more than this is a mistake.
constexpr int64_t kMaxProgramBytes = 1 << 20;

constexpr absl::string_view kKeys[] = {"jobs",
                                       "metric_name_bytes",
                                       "labels_per_series",
                                       "label_name_bytes",
                                       "label_value_bytes",
                                       "allowed_labels",
                                       "values_per_label",
                                       "series_per_metric",
                                       "series_per_job",
                                       "overflow_series_per_job",
                                       "text_bytes",
                                       "series",
                                       "stored_series",
                                       "layout_columns_per_job",
                                       "names"};
static_assert(std::size(kKeys) == kLimits);

absl::StatusOr<std::unique_ptr<const re2::RE2>> Compile(size_t rule, absl::string_view key,
                                                        const std::string& pattern) {
  if (pattern.empty()) return std::unique_ptr<const re2::RE2>();
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxProgramBytes);
  auto compiled = std::make_unique<const re2::RE2>(pattern, options);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(absl::StrCat("rules[", rule, "].", key, ": \"", pattern,
                                                 "\" is no RE2 expression: ", compiled->error()));
}

bool Matches(const std::unique_ptr<const re2::RE2>& pattern, absl::string_view name) {
  return pattern == nullptr ||
         re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *pattern);
}

}  // namespace

absl::string_view LimitKey(Limit limit) { return kKeys[static_cast<size_t>(limit)]; }

absl::string_view ActionName(LimitAction action) {
  switch (action) {
    case LimitAction::kReject:
      return "reject";
    case LimitAction::kFold:
      return "fold";
    case LimitAction::kObserve:
      return "observe";
  }
  return "";
}

LimitPolicy::LimitPolicy(Options options) : options_(std::move(options)) {
  std::sort(options_.series.allowed_labels.begin(), options_.series.allowed_labels.end());
  for (LimitRule& rule : options_.rules) {
    std::sort(rule.limits.allowed_labels.begin(), rule.limits.allowed_labels.end());
  }
}

LimitPolicy::~LimitPolicy() = default;

absl::StatusOr<std::shared_ptr<const LimitPolicy>> LimitPolicy::Create(Options options) {
  std::shared_ptr<LimitPolicy> policy(new LimitPolicy(std::move(options)));
  for (size_t i = 0; i < policy->options_.rules.size(); ++i) {
    TACHO_ASSIGN_OR_RETURN(auto job, Compile(i, "job", policy->options_.rules[i].job));
    TACHO_ASSIGN_OR_RETURN(auto metric, Compile(i, "metric", policy->options_.rules[i].metric));
    policy->patterns_.push_back({std::move(job), std::move(metric)});
  }
  return std::shared_ptr<const LimitPolicy>(std::move(policy));
}

std::shared_ptr<const LimitPolicy> LimitPolicy::Default() {
  return std::shared_ptr<const LimitPolicy>(new LimitPolicy(Options()));
}

LimitPolicy::OfJob::OfJob(const LimitPolicy* policy, absl::string_view job) : policy_(policy) {
  for (size_t i = 0; i < policy->patterns_.size(); ++i) {
    if (!Matches(policy->patterns_[i].job, job)) continue;
    candidates_.push_back(static_cast<int>(i));
    if (policy->patterns_[i].metric == nullptr) return;
  }
}

int LimitPolicy::OfJob::RuleOf(absl::string_view metric) {
  if (candidates_.empty()) return kNoRule;
  const auto find = [&] {
    for (const int rule : candidates_) {
      if (Matches(policy_->patterns_[static_cast<size_t>(rule)].metric, metric)) return rule;
    }
    return kNoRule;
  };
  if (policy_->patterns_[static_cast<size_t>(candidates_[0])].metric == nullptr) {
    return candidates_[0];
  }
  const auto [known, fresh] = known_.try_emplace(metric, kNoRule);
  if (fresh) known->second = find();
  return known->second;
}

}  // namespace tacho::storage

// metrics.rules, compiled: what is aggregated for /metrics, how, and under which name.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/series.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::aggregate {

enum class AggregateFunction {
  kSum,
  kAvg,
  kMin,
  kMax,
  kCount,
  kNonFinite,
  kStddev,  // The population's, not the sample's.
  kQuantile,
  kRate,  // Only counters have one.
};

// A value of the label `stat`.
struct AggregateStat {
  std::string name;  // "p90".
  AggregateFunction function = AggregateFunction::kSum;
  double q = 0;  // The quantile of kQuantile, 0 to 1.

  friend bool operator==(const AggregateStat&, const AggregateStat&) = default;
};

// "p99" is the 99 % quantile, "p999" the 99.9 %: digits after the second are decimals.
//   INVALID_ARGUMENT  there is no such function.
absl::StatusOr<AggregateStat> ParseAggregateStat(absl::string_view name);

struct AggregateRule {
  struct LabelPattern {
    std::string name;
    std::unique_ptr<const re2::RE2> pattern;
  };

  std::string name;                     // "rules[2]", or "built-in: by host".
  std::unique_ptr<const re2::RE2> job;  // nullptr: every job; so below.
  std::unique_ptr<const re2::RE2> metric;
  std::vector<LabelPattern> labels;
  bool keep = true;
  bool to_jobs = false;
  std::vector<std::string> by;
  std::vector<AggregateStat> gauge_stats;
  std::vector<AggregateStat> counter_stats;  // Without the rate.
  bool counter_rate = false;
  std::string rename;
  uint32_t max_groups = 0;

  bool MatchesJob(absl::string_view name_of_job) const;
  bool MatchesMetric(absl::string_view name_of_metric) const;
  bool MatchesLabels(const storage::Series& series) const;
};

// The value of a label as rules see it, host and task included; "" if the series has none.
std::string AggregateLabel(const storage::Series& series, absl::string_view name);

struct AggregateRules {
  std::vector<AggregateRule> rules;
  size_t configured = 0;  // So many, from the front, are configured; the others are built in.
};
using AggregateRulesPtr = std::shared_ptr<const AggregateRules>;

//   INVALID_ARGUMENT  the text names the key: an invalid expression or function, a name that is not
//                     allowed on the page or belongs to another family, two rules that make the
//                     same lines.
absl::StatusOr<AggregateRulesPtr> MakeAggregateRules(const config::v1::Collector::Metrics& config);

// One line for each rule, for people: what it matches and what it makes.
std::string DescribeAggregateRules(const AggregateRules& rules);

}  // namespace tacho::server::aggregate

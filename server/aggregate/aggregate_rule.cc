// Compiles metrics.rules and refuses what could not work: a rule whose lines an earlier rule has
// made already, or a name that two metrics would share. A mistake shows at --check-config, not on
// the page.
#include "server/aggregate/aggregate_rule.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"
#include "server/aggregate/exposition_name.h"

namespace tacho::server::aggregate {
namespace {

constexpr char kMetric[] = "{metric}";
constexpr char kDefaultName[] = "tacho_job_{metric}";

absl::Status Wrong(const std::string& key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("metrics.", key, ": ", what));
}

absl::Status Compile(const std::string& key, const std::string& pattern,
                     std::unique_ptr<const re2::RE2>* out) {
  if (pattern.empty()) return absl::OkStatus();
  auto compiled = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  if (!compiled->ok()) {
    return Wrong(key, absl::StrCat("\"", pattern, "\" is no RE2: ", compiled->error()));
  }
  *out = std::move(compiled);
  return absl::OkStatus();
}

bool Matches(const std::unique_ptr<const re2::RE2>& pattern, absl::string_view text) {
  return pattern == nullptr ||
         re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

const std::vector<std::string>& DefaultFunctions() {
  static const auto* const kNames = new std::vector<std::string>{
      "sum", "avg", "min", "max", "p50", "p90", "p99", "count", "non_finite"};
  return *kNames;
}

absl::Status SetFunctions(const std::string& key, const std::vector<std::string>& names,
                          AggregateRule* rule) {
  using F = AggregateFunction;
  for (const std::string& name : names.empty() ? DefaultFunctions() : names) {
    const auto stat = ParseAggregateStat(name);
    if (!stat.ok()) return Wrong(absl::StrCat(key, ".functions"), stat.status().message());
    const F function = stat->function;
    if (function == F::kRate) {
      rule->counter_rate = true;
      continue;
    }
    if (std::count(rule->gauge_stats.begin(), rule->gauge_stats.end(), *stat) > 0) {
      return Wrong(absl::StrCat(key, ".functions"), absl::StrCat(name, " is given twice"));
    }
    rule->gauge_stats.push_back(*stat);
    if (function == F::kSum || function == F::kMin || function == F::kMax) {
      rule->counter_stats.push_back(*stat);
    }
  }
  return absl::OkStatus();
}

bool IsName(absl::string_view name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_part = [&](char c) {
    return is_letter(c) || c == '_' || std::isdigit(static_cast<unsigned char>(c)) != 0;
  };
  return !name.empty() && (is_letter(name[0]) || name[0] == '_') &&
         std::all_of(name.begin(), name.end(), is_part);
}

// A pattern that matches one name alone.
bool IsPlainName(const std::string& pattern) {
  return !pattern.empty() && re2::RE2::QuoteMeta(pattern) == pattern;
}

absl::Status CheckName(const std::string& key, const config::v1::AggregateRule& config) {
  const std::string& rename = config.rename();
  const std::string name = absl::StrReplaceAll(rename, {{kMetric, "x"}});
  if (!IsName(name)) {
    return Wrong(key,
                 absl::StrCat("\"", rename,
                              "\" is not a valid metric name; expected letters, digits, _ and at "
                              "most {metric}"));
  }
  if (absl::StrContains(rename, kMetric)) return absl::OkStatus();
  if (!IsPlainName(config.metric())) {
    return Wrong(key,
                 absl::StrCat("\"", rename, "\" would name every metric that \"", config.metric(),
                              "\" matches; put {metric} in it, or name one metric"));
  }
  if (IsCollectorFamily(rename)) {
    return Wrong(key, absl::StrCat("\"", rename, "\" is one of the collector's own families"));
  }
  return absl::OkStatus();
}

absl::Status CheckBy(const std::string& key, const std::vector<std::string>& by) {
  for (size_t i = 0; i < by.size(); ++i) {
    if (!IsName(by[i]))
      return Wrong(key, absl::StrCat("\"", by[i], "\" is not a valid label name"));
    for (const char* taken : {"job", "stat", "metric", "le"}) {
      if (by[i] == taken) {
        return Wrong(key, absl::StrCat("\"", taken, "\" is a label that aggregates have anyway"));
      }
    }
    if (std::count(by.begin(), by.end(), by[i]) > 1) {
      return Wrong(key, absl::StrCat("\"", by[i], "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AggregateRule> MakeRule(const std::string& key,
                                       const config::v1::AggregateRule& config) {
  AggregateRule rule;
  rule.name = key;
  const auto key_of = [&](absl::string_view field) { return absl::StrCat(key, ".", field); };
  TACHO_RETURN_IF_ERROR(Compile(key_of("job"), config.job(), &rule.job));
  TACHO_RETURN_IF_ERROR(Compile(key_of("metric"), config.metric(), &rule.metric));
  for (int i = 0; i < config.labels_size(); ++i) {
    auto& label = rule.labels.emplace_back();
    label.name = config.labels(i).name();
    const std::string label_key = key_of(absl::StrCat("labels[", i, "].pattern"));
    if (auto s = Compile(label_key, config.labels(i).pattern(), &label.pattern); !s.ok()) return s;
  }
  rule.keep = config.keep();
  if (!rule.keep) return rule;
  rule.to_jobs = config.to_jobs();
  rule.by.assign(config.by().begin(), config.by().end());
  TACHO_RETURN_IF_ERROR(CheckBy(key_of("by"), rule.by));
  if (auto s = SetFunctions(key, {config.functions().begin(), config.functions().end()}, &rule);
      !s.ok()) {
    return s;
  }
  TACHO_RETURN_IF_ERROR(CheckName(key_of("rename"), config));
  rule.rename = config.rename();
  rule.max_groups = config.max_groups();
  return rule;
}

// Two rules of which the later can make no line that the earlier has not made, or that give two
// metrics one name.
absl::Status CheckConflicts(const config::v1::Collector::Metrics& config) {
  const auto labels_of = [](const config::v1::AggregateRule& rule) {
    return absl::StrJoin(rule.labels(), ",", [](std::string* out, const auto& label) {
      absl::StrAppend(out, label.name(), "=", label.pattern());
    });
  };
  for (int i = 0; i < config.rules_size(); ++i) {
    for (int j = 0; j < i; ++j) {
      const config::v1::AggregateRule& a = config.rules(j);
      const config::v1::AggregateRule& b = config.rules(i);
      if (!a.keep() || !b.keep() || a.rename() != b.rename()) continue;
      const std::string key = absl::StrCat("rules[", i, "].rename");
      if (!absl::StrContains(b.rename(), kMetric) && a.metric() != b.metric()) {
        return Wrong(key, absl::StrCat("\"", b.rename(), "\" is the name of \"", a.metric(),
                                       "\" by rules[", j, "]; expected another one"));
      }
      const bool same_by = absl::StrJoin(a.by(), ",") == absl::StrJoin(b.by(), ",");
      if (same_by && a.job() == b.job() && a.metric() == b.metric() &&
          labels_of(a) == labels_of(b) && a.to_jobs() == b.to_jobs()) {
        return Wrong(key, absl::StrCat("makes the same lines as rules[", j,
                                       "]; put the functions of both into one rule"));
      }
    }
  }
  return absl::OkStatus();
}

AggregateRule BuiltIn(absl::string_view name, const std::string& job, const std::string& metric,
                      std::vector<std::string> by, const std::vector<std::string>& functions,
                      bool to_jobs) {
  AggregateRule rule;
  rule.name = absl::StrCat("built-in: ", name);
  if (!job.empty()) rule.job = std::make_unique<re2::RE2>(job);
  if (!metric.empty()) rule.metric = std::make_unique<re2::RE2>(metric);
  rule.by = std::move(by);
  (void)SetFunctions(rule.name, functions, &rule);  // They are right.
  rule.rename = kDefaultName;
  rule.to_jobs = to_jobs;
  rule.max_groups = 1000;
  return rule;
}

}  // namespace

absl::StatusOr<AggregateStat> ParseAggregateStat(absl::string_view name) {
  using F = AggregateFunction;
  constexpr std::pair<absl::string_view, F> kPlain[] = {
      {"sum", F::kSum},       {"avg", F::kAvg},     {"min", F::kMin},
      {"max", F::kMax},       {"count", F::kCount}, {"non_finite", F::kNonFinite},
      {"stddev", F::kStddev}, {"rate", F::kRate}};
  for (const auto& [plain, function] : kPlain) {
    if (name == plain) return AggregateStat{std::string(name), function, 0};
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool quantile = name.size() >= 2 && name.size() <= 6 && name[0] == 'p' &&
                        std::all_of(name.begin() + 1, name.end(), is_digit);
  if (quantile) {
    double q = 0;
    const std::string digits(name.substr(1));
    const std::string share = digits == "100"      ? "1"
                              : digits.size() == 1 ? absl::StrCat("0.0", digits)
                                                   : absl::StrCat("0.", digits);
    if (absl::SimpleAtod(share, &q)) return AggregateStat{std::string(name), F::kQuantile, q};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no function \"", name,
                   "\"; expected sum, avg, min, max, a quantile such as p95, stddev, count, "
                   "non_finite or rate"));
}

bool AggregateRule::MatchesJob(absl::string_view name_of_job) const {
  return Matches(job, name_of_job);
}

bool AggregateRule::MatchesMetric(absl::string_view name_of_metric) const {
  return Matches(metric, name_of_metric);
}

bool AggregateRule::MatchesLabels(const storage::Series& series) const {
  return std::all_of(labels.begin(), labels.end(), [&](const LabelPattern& label) {
    return Matches(label.pattern, AggregateLabel(series, label.name));
  });
}

std::string AggregateLabel(const storage::Series& series, absl::string_view name) {
  if (name == "host") return series.source->host;
  if (name == "task") return series.source->task ? absl::StrCat(*series.source->task) : "";
  return std::string(series.labels->Find(name));
}

absl::StatusOr<AggregateRulesPtr> MakeAggregateRules(const config::v1::Collector::Metrics& config) {
  auto rules = std::make_shared<AggregateRules>();
  for (int i = 0; i < config.rules_size(); ++i) {
    TACHO_ASSIGN_OR_RETURN(auto rule, MakeRule(absl::StrCat("rules[", i, "]"), config.rules(i)));
    rules->rules.push_back(std::move(rule));
  }
  TACHO_RETURN_IF_ERROR(CheckConflicts(config));
  rules->configured = rules->rules.size();
  if (config.built_in_rules()) {
    const std::vector<std::string> few = {"sum", "avg", "min", "max"};
    rules->rules.push_back(BuiltIn("by job", "", "", {}, {}, false));
    rules->rules.push_back(BuiltIn("by host", "hosts", "(chip|host)_.*", {"host"}, few, false));
    rules->rules.push_back(BuiltIn("chips to jobs", "hosts", "chip_.*", {}, few, true));
  }
  return AggregateRulesPtr(std::move(rules));
}

std::string DescribeAggregateRules(const AggregateRules& rules) {
  const auto pattern = [](const std::unique_ptr<const re2::RE2>& re) {
    return re == nullptr ? std::string("any") : absl::StrCat("\"", re->pattern(), "\"");
  };
  const auto name = [](std::string* out, const AggregateStat& stat) {
    absl::StrAppend(out, stat.name);
  };
  std::string text;
  for (const AggregateRule& rule : rules.rules) {
    absl::StrAppend(&text, rule.name, ": job ", pattern(rule.job), ", metric ",
                    pattern(rule.metric));
    for (const auto& label : rule.labels) {
      absl::StrAppend(&text, ", ", label.name, " ", pattern(label.pattern));
    }
    if (!rule.keep) {
      absl::StrAppend(&text, ": left out\n");
      continue;
    }
    const std::string labels = absl::StrJoin(rule.by, ",");
    absl::StrAppend(&text, " -> ", rule.rename, "{job", labels.empty() ? "" : ",", labels,
                    ",stat=", absl::StrJoin(rule.gauge_stats, "|", name),
                    "}, for counters stat=", absl::StrJoin(rule.counter_stats, "|", name),
                    rule.counter_rate ? " and a rate" : "",
                    rule.to_jobs ? ", under the jobs of the hosts" : "", "\n");
  }
  return text;
}

}  // namespace tacho::server::aggregate

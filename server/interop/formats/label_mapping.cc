#include "server/interop/formats/label_mapping.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::interop {
namespace {

// Labels that the sources of this field use for the same thing. Those of OpenTelemetry are its
// resource attributes with _ for each dot. A rank is only taken where it is the label of a trainer:
// exporters of hardware use the same word for other things.
constexpr char kJob[] =
    "{tacho_job,job,service_name,slurm_job_name,k8s_job_name,jobset_name:unknown}";
constexpr char kHost[] =
    "{tacho_host,host,host_name,hostname,Hostname,node,k8s_node_name,instance|host,"
    "service_instance_id:unknown}";
constexpr char kTask[] = "{tacho_task,task}";
constexpr char kAttempt[] = "{tacho_attempt,attempt}";

config::v1::MappingRule BuiltIn() {
  config::v1::MappingRule rule;
  rule.set_job(kJob);
  rule.set_host(kHost);
  rule.set_task(kTask);
  rule.set_attempt(kAttempt);
  rule.set_metric(absl::StrCat("{", kNameLabel, "}"));
  return rule;
}

// The collector's own aggregates on /metrics. A Prometheus that reads that page and writes all it
// has to the same collector would have them aggregated again and again.
config::v1::MappingRule OwnAggregates() {
  config::v1::MappingRule rule;
  auto* const name = rule.add_match();
  name->set_name(std::string(kNameLabel));
  name->set_pattern("tacho_job_.*");
  rule.set_drop(true);
  return rule;
}

absl::Status WithKey(const std::string& rule, absl::string_view key, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(rule, ".", key, ": ", status.message()));
}

bool IsReserved(absl::string_view name) {
  return name == "job" || name == "task" || name == "host" || name == "overflow";
}

std::string AllowedName(absl::string_view name) {
  std::string allowed = LabelNameOf(name);
  if (absl::ascii_isdigit(static_cast<unsigned char>(allowed[0]))) allowed.insert(0, "_");
  return IsReserved(allowed) ? absl::StrCat("exported_", allowed) : allowed;
}

// The number that a template makes; nullopt if it is none, and then no label counts as used.
std::optional<uint32_t> Number(const LabelTemplate& text, const storage::Labels& labels,
                               std::vector<absl::string_view>* used) {
  const size_t before = used->size();
  const auto expanded = text.Expand(labels, used);
  uint32_t number = 0;
  if (expanded.has_value() && absl::SimpleAtoi(*expanded, &number)) return number;
  used->resize(before);
  return std::nullopt;
}

template <typename List>
bool Contains(const List& list, absl::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LabelMapping>> LabelMapping::Create(
    const config::v1::Interop& config) {
  auto mapping = std::make_shared<LabelMapping>();
  for (int i = 0; i < config.mapping_size(); ++i) {
    TACHO_ASSIGN_OR_RETURN(auto rule,
                           MakeRule(config.mapping(i), absl::StrCat("interop.mapping[", i, "]")));
    mapping->rules_.push_back(std::move(rule));
  }
  for (const auto& [config_of, name] :
       {std::pair(OwnAggregates(), "the built-in rule on the collector's own aggregates"),
        std::pair(BuiltIn(), "the built-in rule")}) {
    TACHO_ASSIGN_OR_RETURN(auto built_in, MakeRule(config_of, name));
    mapping->rules_.push_back(std::move(built_in));
  }
  return std::shared_ptr<const LabelMapping>(std::move(mapping));
}

absl::StatusOr<LabelMapping::Rule> LabelMapping::MakeRule(const config::v1::MappingRule& config,
                                                          std::string name) {
  Rule rule;
  rule.name = std::move(name);
  rule.drop = config.drop();
  for (const auto& pattern : config.match()) {
    auto regex = std::make_shared<RE2>(absl::StrCat("^(?:", pattern.pattern(), ")$"), RE2::Quiet);
    if (!regex->ok()) {
      return WithKey(rule.name, "match", absl::InvalidArgumentError(regex->error()));
    }
    rule.match.emplace_back(pattern.name(), std::move(regex));
  }
  const std::pair<const char*, std::pair<const std::string*, LabelTemplate*>> templates[] = {
      {"job", {&config.job(), &rule.job}},          {"host", {&config.host(), &rule.host}},
      {"task", {&config.task(), &rule.task}},       {"attempt", {&config.attempt(), &rule.attempt}},
      {"metric", {&config.metric(), &rule.metric}},
  };
  for (const auto& [key, pair] : templates) {
    auto parsed = LabelTemplate::Parse(*pair.first);
    if (!parsed.ok()) return WithKey(rule.name, key, parsed.status());
    *pair.second = *std::move(parsed);
  }
  for (const auto& [from, to] : config.rename_labels()) {
    if (to.empty()) {
      return WithKey(rule.name, "rename_labels",
                     absl::InvalidArgumentError(absl::StrCat(
                         "the new name of ", from, " is empty; drop_labels leaves labels out")));
    }
    rule.renames.emplace_back(from, to);
  }
  rule.drop_labels.assign(config.drop_labels().begin(), config.drop_labels().end());
  return rule;
}

absl::StatusOr<MappedSeries> LabelMapping::Map(storage::Labels labels) const {
  std::sort(labels.begin(), labels.end());
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto twice = std::adjacent_find(labels.begin(), labels.end(), same_name);
  if (twice != labels.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a series has the label \"", twice->first, "\" twice"));
  }
  const std::string* const name = FindLabel(labels, kNameLabel);
  if (name == nullptr || name->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a series has no metric name: its label ", kNameLabel, " is missing"));
  }
  MappedSeries mapped;
  for (const Rule& rule : rules_) {
    if (Fits(rule, labels) && Apply(rule, labels, &mapped)) break;
  }
  return mapped;
}

bool LabelMapping::Fits(const Rule& rule, const storage::Labels& labels) {
  return std::all_of(rule.match.begin(), rule.match.end(), [&](const auto& match) {
    const std::string* const value = FindLabel(labels, match.first);
    const re2::StringPiece text = value == nullptr ? re2::StringPiece() : *value;
    return RE2::FullMatch(text, *match.second);
  });
}

bool LabelMapping::Apply(const Rule& rule, const storage::Labels& labels, MappedSeries* mapped) {
  mapped->rule = rule.name;
  if (rule.drop) {
    mapped->dropped = true;
    return true;
  }
  std::vector<absl::string_view> used;
  auto job = rule.job.Expand(labels, &used);
  auto host = rule.host.Expand(labels, &used);
  auto metric = rule.metric.Expand(labels, &used);
  if (!job.has_value() || !host.has_value() || !metric.has_value()) return false;
  mapped->source.job = *std::move(job);
  mapped->source.host = *std::move(host);
  mapped->source.task = Number(rule.task, labels, &used);
  mapped->source.attempt = Number(rule.attempt, labels, &used).value_or(0);
  mapped->metric = *std::move(metric);
  for (const auto& [name, value] : labels) {
    if (value.empty() || Contains(used, name) || Contains(rule.drop_labels, name)) continue;
    absl::string_view now = name;
    for (const auto& [from, to] : rule.renames) {
      if (from == name) now = to;
    }
    if (now.empty() || absl::StartsWith(now, "__")) continue;
    mapped->labels.emplace_back(AllowedName(now), value);
  }
  // Two names may have become one; the values are joined, as OpenTelemetry's rules for Prometheus
  // have it (specification/compatibility/prometheus_and_openmetrics.md).
  std::sort(mapped->labels.begin(), mapped->labels.end());
  storage::Labels joined;
  for (auto& label : mapped->labels) {
    if (!joined.empty() && joined.back().first == label.first) {
      absl::StrAppend(&joined.back().second, ";", label.second);
    } else {
      joined.push_back(std::move(label));
    }
  }
  mapped->labels = std::move(joined);
  return true;
}

}  // namespace tacho::server::interop

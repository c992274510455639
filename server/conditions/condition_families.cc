#include "server/conditions/condition_families.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conditions/window/finding.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::conditions {
namespace {

using Label = prometheus::ClientMetric::Label;
using Labels = std::vector<Label>;

// The first culprit of each host, or one culprit without fields.
std::vector<Culprit> Suspects(const Finding& finding) {
  if (finding.culprits.empty()) return {Culprit()};
  std::vector<Culprit> suspects;
  std::set<std::string> hosts;
  for (const Culprit& culprit : finding.culprits) {
    if (!suspects.empty() && culprit.host.empty()) continue;
    if (hosts.insert(culprit.host).second) suspects.push_back(culprit);
  }
  return suspects;
}

// All lines have the step of the first culprit, where the condition began: an alert shows one step,
// and does not know the lines' order.
Labels InfoLabels(const Finding& finding, const Culprit& first, const Culprit& suspect,
                  Labels labels) {
  const auto step = first.step ? first.step : finding.step;
  labels.push_back({"reason", finding.reason});
  labels.push_back({"host", suspect.host});
  labels.push_back({"task", suspect.task ? absl::StrCat(*suspect.task) : ""});
  labels.push_back({"chip", suspect.chip});
  labels.push_back({"step", step ? absl::StrCat(*step) : ""});
  labels.push_back({"metric", suspect.metric});
  return labels;
}

}  // namespace

std::vector<prometheus::MetricFamily> ConditionFamilies(const JobConditions& conditions,
                                                        size_t max_lines) {
  auto states = metrics::EmptyFamily("tacho_job_condition");
  auto infos = metrics::EmptyFamily("tacho_job_condition_info");
  auto since = metrics::EmptyFamily("tacho_job_condition_since_timestamp_seconds");
  auto culprits = metrics::EmptyFamily("tacho_job_condition_culprits");
  size_t made = 0;
  size_t left_out = 0;
  for (const JudgedConditionPtr& one : conditions) {
    if (one->status == ConditionStatus::kUnknown) continue;
    const bool is_true = one->status == ConditionStatus::kTrue;
    std::vector<Culprit> suspects;
    if (is_true) suspects = Suspects(one->finding);
    const size_t lines = is_true ? 3 + suspects.size() : 1;
    if (made + lines > max_lines) {
      left_out += lines;
      continue;
    }
    made += lines;
    const Labels names = {{"job", one->job}, {"condition", one->name}};
    Labels graded = names;
    graded.push_back({"severity", std::string(SeverityName(one->finding.severity))});
    metrics::AddLine(graded, is_true ? 1 : 0, &states);
    if (!is_true) continue;
    for (const Culprit& suspect : suspects) {
      metrics::AddLine(InfoLabels(one->finding, suspects.front(), suspect, graded), 1, &infos);
    }
    metrics::AddLine(names, static_cast<double>(one->since_ns) / 1e9, &since);
    metrics::AddLine(names, static_cast<double>(one->finding.culprits.size()), &culprits);
  }
  auto missing = metrics::EmptyFamily("tacho_conditions_lines_left_out");
  metrics::AddLine({}, static_cast<double>(left_out), &missing);
  std::vector<prometheus::MetricFamily> all;
  for (auto* family : {&states, &infos, &since, &culprits, &missing}) {
    if (!family->metric.empty()) all.push_back(std::move(*family));
  }
  return all;
}

}  // namespace tacho::server::conditions

#include "server/ingest/admitted_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/ingest/text_rules.h"
#include "server/limits/limit_text.h"

namespace tacho::server::ingest {
namespace {

// What is wrong with a metric or a label, as "field: problem"; empty if nothing is.

std::string MetricProblem(const v1::Metric& metric) {
  if (std::string problem = MetricNameProblem(metric.name()); !problem.empty()) {
    return absl::StrCat("metric.name: ", problem);
  }
  if (std::string problem = TextProblem(metric.unit(), 0, kMaxUnitBytes); !problem.empty()) {
    return absl::StrCat("metric.unit: ", problem);
  }
  if (std::string problem = TextProblem(metric.help(), 0, kMaxHelpBytes); !problem.empty()) {
    return absl::StrCat("metric.help: ", problem);
  }
  if (v1::MetricType_IsValid(metric.type())) return "";
  return absl::StrCat("metric.type: ", metric.type(), " is no metric type");
}

std::string LabelProblem(const v1::Label& label) {
  if (std::string problem = LabelNameProblem(label.name()); !problem.empty()) {
    return absl::StrCat("labels.name: ", problem);
  }
  if (std::string problem = LabelValueProblem(label.value()); !problem.empty()) {
    return absl::StrCat("labels.", label.name(), ": ", problem);
  }
  return "";
}

storage::SeriesDefinition ToDefinition(const v1::Layout::Series& series) {
  const v1::Metric& metric = series.metric();
  const auto type = metric.type() == v1::METRIC_TYPE_UNSPECIFIED
                        ? storage::MetricType::kGauge
                        : static_cast<storage::MetricType>(metric.type());
  storage::SeriesDefinition definition;
  definition.metric = {metric.name(), type, metric.unit(), metric.help()};
  definition.labels.reserve(static_cast<size_t>(series.labels_size()));
  for (const v1::Label& label : series.labels()) {
    definition.labels.emplace_back(label.name(), label.value());
  }
  std::sort(definition.labels.begin(), definition.labels.end());
  return definition;
}

std::string SeriesProblem(const v1::Layout::Series& series) {
  if (series.labels_size() > kMaxLabels) {
    return absl::StrCat("labels: has ", series.labels_size(), "; at most ", kMaxLabels,
                        " are ever allowed");
  }
  if (std::string problem = MetricProblem(series.metric()); !problem.empty()) return problem;
  for (const v1::Label& label : series.labels()) {
    if (std::string problem = LabelProblem(label); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace

void AdmittedLayout::Add(uint32_t column, const v1::Layout::Series& untrusted) {
  std::string problem = SeriesProblem(untrusted);
  if (problem.empty()) {
    storage::SeriesDefinition series = ToDefinition(untrusted);
    const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(series.labels.begin(), series.labels.end(), same_name);
    if (twice == series.labels.end()) {
      if (invalid > 0) columns.push_back(column);
      definition.series.push_back(std::move(series));
      return;
    }
    problem = absl::StrCat("labels: \"", twice->first, "\" is given twice");
  }
  if (invalid++ > 0) return;
  for (uint32_t before = 0; before < column; ++before) columns.push_back(before);
  if (untrusted.labels_size() <= kMaxLabels) {
    invalid_example = limits::ShortText(limits::DescribeSeries(ToDefinition(untrusted)));
  } else {
    invalid_example = limits::ShortText(untrusted.metric().name());
  }
  invalid_problem = limits::ShortText(absl::StrCat("layout.series[", column, "].", problem));
}

}  // namespace tacho::server::ingest

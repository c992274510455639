// A limit costs the agent samples and never a message: so every column keeps its place
// in what the agent sends, and a selection copies rows only if some of their columns are not
// stored.
#include "server/ingest/layouts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "server/ingest/text_rules.h"
#include "server/limits/limit_text.h"

namespace tacho::server::ingest {
namespace {

// Both return the problem of a metric or a label as "field: problem"; empty if there is none.

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
  TACHO_CHECK(column == definition.series.size() + invalid);
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

StreamLayout StreamLayout::Of(const AdmittedLayout& admitted, storage::Registration registration) {
  const storage::LayoutDefinition& definition = admitted.definition;
  TACHO_CHECK(registration.columns.size() <= definition.series.size() &&
              definition.series.size() + admitted.invalid == admitted.width);
  StreamLayout result;
  if (registration.layout != nullptr) {
    result.id = registration.layout->id;
    result.job = registration.layout->series.front()->job_id;
    result.layout = registration.layout;
  }
  result.job_name = definition.source.job;
  result.width = admitted.width;
  result.has_steps = definition.has_steps;
  if (!definition.series.empty()) {
    result.first_series = limits::ShortText(limits::DescribeSeries(definition.series[0]));
  }
  result.refused = admitted.invalid;
  if (admitted.invalid > 0) {
    result.concerned.push_back({.series = admitted.invalid,
                                .example = admitted.invalid_example,
                                .detail = admitted.invalid_problem});
  }
  for (const storage::Breach& breach : registration.breaches) {
    if (breach.action == storage::LimitAction::kReject) ++result.refused;
    result.Concern(admitted, registration, breach);
  }
  result.whole = registration.columns.size() == admitted.width;
  if (result.whole) return result;
  result.columns = std::move(registration.columns);
  result.folded = std::move(registration.folded);
  if (admitted.columns.empty()) return result;
  for (uint32_t& column : result.columns) column = admitted.columns[column];
  for (auto& columns : result.folded) {
    for (uint32_t& column : columns) column = admitted.columns[column];
  }
  return result;
}

void StreamLayout::Concern(const AdmittedLayout& admitted,
                           const storage::Registration& registration,
                           const storage::Breach& breach) {
  TACHO_CHECK(breach.column < admitted.definition.series.size());
  const storage::SeriesDefinition& series = admitted.definition.series[breach.column];
  TACHO_CHECK(breach.label < static_cast<int>(series.labels.size()));
  absl::string_view label;
  if (breach.label >= 0) label = series.labels[static_cast<size_t>(breach.label)].first;
  const absl::string_view name =
      breach.limit == storage::Limit::kMetricSeries ? series.metric.name : label;
  // One with a name, as long as there are few; else one for all names of the limit.
  Concerned* unnamed = nullptr;
  for (Concerned& known : concerned) {
    if (known.limit != breach.limit || known.action != breach.action) continue;
    if (known.name == name) {
      ++known.series;
      return;
    }
    if (known.name.empty()) unnamed = &known;
  }
  const bool few = concerned.size() < kMaxNamed;
  if (!few && unnamed != nullptr) {
    ++unnamed->series;
    return;
  }
  concerned.push_back(
      {.limit = breach.limit,
       .action = breach.action,
       .name = few ? std::string(name) : "",
       .series = 1,
       .example = limits::ShortText(limits::DescribeSeries(series)),
       .detail = limits::ShortText(limits::DescribeLimit(*registration.limits, breach, label))});
}

void RowSelection::Select(const storage::RowsView& rows, const StreamLayout& layout,
                          const TimeWindow& window) {
  TACHO_CHECK(rows.values.size() == rows.times.size() * layout.width);
  TACHO_CHECK(rows.steps.size() == (layout.has_steps ? rows.times.size() : 0));
  future_rows_ = 0;
  old_rows_ = 0;
  for (const int64_t time : rows.times) {
    if (time > window.newest_ns) ++future_rows_;
    if (time < window.oldest_ns) ++old_rows_;
  }
  if (future_rows_ + old_rows_ == 0 && layout.whole) {
    selected_ = rows;
    return;
  }
  times_.clear();
  steps_.clear();
  values_.clear();
  for (size_t row = 0; row < rows.times.size(); ++row) {
    const int64_t time = rows.times[row];
    if (time >= window.oldest_ns && time <= window.newest_ns) CopyRow(rows, layout, row);
  }
  selected_ = {times_, steps_, values_};
}

void RowSelection::CopyRow(const storage::RowsView& rows, const StreamLayout& layout, size_t row) {
  times_.push_back(rows.times[row]);
  if (!rows.steps.empty()) steps_.push_back(rows.steps[row]);
  const auto values = rows.values.subspan(row * layout.width, layout.width);
  if (layout.whole) {
    values_.insert(values_.end(), values.begin(), values.end());
    return;
  }
  for (const uint32_t column : layout.columns) values_.push_back(values[column]);
  for (const auto& columns : layout.folded) values_.push_back(SumOf(values, columns));
}

double RowSelection::SumOf(std::span<const double> values, const std::vector<uint32_t>& columns) {
  const auto is_stale = [](double value) { return IsStaleMarker(value); };
  double sum = StaleMarker();
  for (const uint32_t column : columns) {
    if (is_stale(values[column])) continue;
    // The first as it is: a sum of one is that one, bit for bit.
    sum = is_stale(sum) ? values[column] : sum + values[column];
  }
  return sum;
}

}  // namespace tacho::server::ingest

#include "server/limits/limit_text.h"

#include "absl/strings/str_cat.h"

namespace tacho::server::limits {
namespace {

using storage::Limit;

const char* RemedyOf(Limit limit) {
  switch (limit) {
    case Limit::kJobs:
      return "reuse job names, or raise it";
    case Limit::kMetricNameBytes:
    case Limit::kLabelNameBytes:
    case Limit::kLabelValueBytes:
      return "shorten it, or raise it";
    case Limit::kLabels:
      return "drop labels, or raise it";
    case Limit::kAllowedLabels:
      return "drop the label, or name it there";
    case Limit::kLabelValues:
      return "drop the label or give it fewer values, or raise it";
    case Limit::kMetricSeries:
    case Limit::kJobSeries:
    case Limit::kOverflowSeries:
    case Limit::kTextBytes:
    case Limit::kSeries:
    case Limit::kStoredSeries:
      return "drop labels or metrics, or raise it";
    case Limit::kLayoutColumns:
      return "put the same series together in fewer ways, or raise it";
    case Limit::kNames:
      return "mend the name or text";
  }
  return "";
}

}  // namespace

std::string ShortText(std::string text) {
  if (text.size() <= kShortTextBytes) return text;
  size_t end = kShortTextBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

std::string DescribeSeries(const storage::SeriesDefinition& series) {
  std::string text = series.metric.name;
  const char* separator = "{";
  for (const auto& [name, value] : series.labels) {
    absl::StrAppend(&text, separator, name, "=\"", value, "\"");
    separator = ",";
  }
  if (!series.labels.empty()) text += '}';
  return text;
}

uint64_t BoundOf(const storage::LimitPolicy& policy, Limit limit, int rule) {
  const storage::TotalLimits& totals = policy.totals();
  const storage::SeriesLimits& limits = policy.OfRule(rule);
  switch (limit) {
    case Limit::kJobs:
      return totals.jobs;
    case Limit::kMetricNameBytes:
      return limits.metric_name_bytes;
    case Limit::kLabels:
      return limits.labels_per_series;
    case Limit::kLabelNameBytes:
      return limits.label_name_bytes;
    case Limit::kLabelValueBytes:
      return limits.label_value_bytes;
    case Limit::kAllowedLabels:
      return limits.allowed_labels.size();
    case Limit::kLabelValues:
      return limits.values_per_label;
    case Limit::kMetricSeries:
      return limits.series_per_metric;
    case Limit::kJobSeries:
      return limits.series_per_job;
    case Limit::kOverflowSeries:
      return limits.overflow_series_per_job;
    case Limit::kTextBytes:
      return totals.text_bytes;
    case Limit::kSeries:
      return totals.series;
    case Limit::kStoredSeries:
      return totals.stored_series;
    case Limit::kLayoutColumns:
      return totals.layout_columns_per_job;
    case Limit::kNames:
      return 0;
  }
  return 0;
}

std::string DescribeLimit(const storage::LimitPolicy& policy, const storage::Breach& breach,
                          absl::string_view label) {
  std::string text = "limits.";
  if (breach.rule != storage::LimitPolicy::kNoRule) {
    absl::StrAppend(&text, "rules[", breach.rule, "].");
  }
  absl::StrAppend(&text, storage::LimitKey(breach.limit));
  if (breach.limit != Limit::kAllowedLabels) {
    absl::StrAppend(&text, " is ", BoundOf(policy, breach.limit, breach.rule));
  }
  if (!label.empty()) absl::StrAppend(&text, ", label \"", label, "\"");
  return absl::StrCat(text, "; ", RemedyOf(breach.limit));
}

}  // namespace tacho::server::limits

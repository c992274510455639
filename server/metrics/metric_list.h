// Every metric family that /metrics may show, but for the aggregates of jobs' own metrics.
#pragma once

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/metrics/metric_info.h"

namespace tacho::server::metrics {

// In the order of docs/metrics.md.
std::span<const MetricTable> AllMetricTables();

// Whether a family of that name is in one of the tables.
bool IsListedMetric(absl::string_view family);

// As the text of a "# HELP" line: without Markdown.
std::string HelpText(const MetricInfo& info);

// As a table in Markdown: what stands between "<!-- metrics: TITLE -->" and "<!-- end -->" in
// docs/metrics.md.
std::string MarkdownTable(const MetricTable& table);

}  // namespace tacho::server::metrics

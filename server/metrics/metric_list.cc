#include "server/metrics/metric_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/metrics/condition_table.h"
#include "server/metrics/connection_table.h"
#include "server/metrics/goodput_table.h"
#include "server/metrics/http_table.h"
#include "server/metrics/ingest_table.h"
#include "server/metrics/job_table.h"
#include "server/metrics/query_table.h"
#include "server/metrics/reload_table.h"

namespace tacho::server::metrics {
namespace {

constexpr MetricTable kTables[] = {
    {"Aggregates of jobs", kJobMetrics},
    {"Conditions", kConditionMetrics},
    {"Goodput", kGoodputMetrics},
    {"Ingest", kIngestMetrics},
    {"Quotas and connections", kConnectionMetrics},
    {"Storage", kStorageMetrics},
    {"Queries", kQueryMetrics},
    {"The HTTP port", kHttpMetrics},
    {"Reloads", kReloadMetrics},
    {"The log", kLogMetrics},
    {"The process", kProcessMetrics},
};

std::string Code(absl::string_view text) { return absl::StrCat("`", text, "`"); }

}  // namespace

std::span<const MetricTable> AllMetricTables() { return kTables; }

bool IsListedMetric(absl::string_view family) {
  for (const MetricTable& table : kTables) {
    for (const MetricInfo& info : table.metrics) {
      if (info.name == family) return true;
    }
  }
  return false;
}

std::string HelpText(const MetricInfo& info) {
  std::string text = absl::StrReplaceAll(info.help, {{"`", ""}});
  if (!info.when.empty()) absl::StrAppend(&text, ". ", info.when);
  return absl::StrCat(text, ".");
}

std::string MarkdownTable(const MetricTable& table) {
  std::string text = "| Name | Type | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";
  for (const MetricInfo& info : table.metrics) {
    std::string labels;
    if (!info.labels.empty()) {
      const std::vector<absl::string_view> names = absl::StrSplit(info.labels, ", ");
      labels = absl::StrJoin(names, ", ", [](std::string* out, absl::string_view name) {
        absl::StrAppend(out, Code(name));
      });
    }
    absl::StrAppend(&text, "| ", Code(info.name), " | ", info.type, " | ", info.unit, " | ", labels,
                    " | ", info.help);
    if (!info.when.empty()) absl::StrAppend(&text, ". ", info.when);
    absl::StrAppend(&text, " |\n");
  }
  return text;
}

}  // namespace tacho::server::metrics

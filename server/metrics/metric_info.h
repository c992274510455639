// What every metric family of the collector is: one table a module, in its metric_table.h; all of
// them are listed in server/metrics/metric_list.h. The tables of docs/metrics.md are made from
// them, and a test holds both against a real page.
//
// To add a family: a row in the table of your module. To add a module: a table of its own,
//
//   inline constexpr MetricInfo kGoodputMetrics[] = {
//       {"tacho_job_mfu_ratio", "gauge", "1", "job", "Model FLOPs utilisation: …", "of jobs that
//       train"},
//   };
//
// a line in metric_list.cc, a heading with the two marker lines in docs/metrics.md, and a run of
//   TACHO_UPDATE_DOCS=1 metric_list_test
#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace tacho::server::metrics {

struct MetricInfo {
  absl::string_view name;    // Of the family, as after "# TYPE".
  absl::string_view type;    // "gauge", "counter", "histogram", "summary".
  absl::string_view unit;    // Empty: as the help says.
  absl::string_view labels;  // By name, separated by ", "; those that not every line has included.
  // What it means; one line, `code` as in Markdown.
  absl::string_view help;
  // Empty: on every page of a collector to which some job reports. Else when: "Only with TLS".
  absl::string_view when = {};
};

// A table, under the heading of docs/metrics.md that has its title in the marker.
struct MetricTable {
  absl::string_view title;
  std::span<const MetricInfo> metrics;
};

}  // namespace tacho::server::metrics

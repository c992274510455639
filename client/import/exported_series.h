// The names of series in the CSV and JSON lines of 'tachoctl export'.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// The columns that identify a series, as text; an empty one is absent.
struct ExportedSeries {
  std::string metric, type, unit, help, task, host, attempt;
  std::string labels;  // {"chip":"0"}, or chip=0,device=sda.
};

// Used from one thread.
class ExportedSeriesReader {
 public:
  explicit ExportedSeriesReader(const ReadOptions& options) : options_(options) {}

  //   INVALID_ARGUMENT  the task, attempt or labels are malformed.
  absl::StatusOr<SeriesKey> Key(const ExportedSeries& series);

 private:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  absl::StatusOr<Labels> ParseLabels(const std::string& text) const;

  const ReadOptions& options_;
  // The last text, which is usually the next one too, with its labels.
  std::string labels_text_;
  Labels labels_;
};

// The type named "gauge", "counter" or "histogram"; unspecified for any other text.
v1::MetricType MetricTypeOf(absl::string_view name);

}  // namespace tacho::importer

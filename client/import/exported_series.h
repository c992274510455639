// Series as 'tachoctl export' names them in CSV and JSON lines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/import/read_options.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// As text; empty: not said.
struct ExportedSeries {
  std::string metric, type, unit, help, task, host, attempt;
  std::string labels;  // {"chip":"0"}, or chip=0,device=sda.
};

// One thread.
class ExportedSeriesReader {
 public:
  explicit ExportedSeriesReader(const ReadOptions& options) : options_(options) {}

  //   INVALID_ARGUMENT  a task, attempt or the labels are no such thing.
  absl::StatusOr<SeriesKey> Key(const ExportedSeries& series);

 private:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  absl::StatusOr<Labels> ParseLabels(const std::string& text) const;

  const ReadOptions& options_;
  // Of the last text, which is mostly the next one too.
  std::string labels_text_;
  Labels labels_;
};

// "gauge", "counter", "histogram"; what else is said, or nothing, is unspecified.
v1::MetricType MetricTypeOf(absl::string_view name);

}  // namespace tacho::importer

// Files what was read of an exposition: rows by job and task, within bounds, and what the agent's
// own metrics say about it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/text/series_rules.h"
#include "proto/exposition/exposition.h"

namespace tacho::agent {

struct ExpositionRowsOptions {
  std::string source;   // The label of the agent's own series about it.
  std::string host;     // Label of every row.
  std::string own_job;  // Under which the agent's own series are filed.
  uint32_t max_series = 5000;
  bool timestamps = true;  // Whether samples' own times count.
};

// One thread.
class ExpositionRows {
 public:
  // Jobs and tasks in one text; an endpoint of a host knows a few.
  static constexpr size_t kMaxSources = 256;
  // Different times in one text.
  static constexpr size_t kMaxTimes = 64;

  ExpositionRows(SeriesRuler ruler, ExpositionRowsOptions options);

  // One reading. A series of the one before that it lacks ends with a stale marker: all of them, if
  // it is empty because the reading failed.
  absl::Status Write(absl::Time now, const Exposition& read, RowSink* sink);
  // More of the agent's own values about this reading, for the next Write().
  void SetOwn(const Metric& metric, double value);

  uint64_t left_out() const;  // In the last reading; does not count what was not wanted.

 private:
  using SourceKey = std::pair<std::string, int64_t>;  // Job; task, or -1.

  void File(const Exposition& read);
  void FileAtItsTime(const ExpositionSample& sample, FiledSeries filed);
  absl::Status WriteTimed(absl::Time now, RowSink* sink);
  absl::Status WriteOwn(absl::Time now, RowSink* sink);
  SeriesRows* RowsOf(const v1::Source& source);

  const SeriesRuler ruler_;
  const ExpositionRowsOptions options_;
  LayoutBudget budget_;
  std::map<SourceKey, std::unique_ptr<SeriesRows>> rows_;
  // Samples with a time of their own: by that and their source; and the newest time of each series.
  std::map<std::pair<int64_t, SourceKey>, std::pair<v1::Layout, std::vector<double>>> timed_;
  absl::flat_hash_map<std::string, int64_t> newest_;
  absl::flat_hash_map<std::string, uint32_t> timed_layouts_;  // By content.
  std::map<std::string, uint64_t> left_out_;                  // By reason; of the last reading.
  Sample own_;
  SeriesRows own_rows_;
  LayoutBudget own_budget_;
  uint64_t filed_ = 0;
};

}  // namespace tacho::agent

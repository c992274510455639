// Records of the column family "index": what registering writes and loading reads back.
// docs/storage_format.md draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/index/job_catalog.h"
#include "storage/model/series.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}  // namespace rocksdb

namespace tacho::storage {

class JobCatalog;

// 'N': the next ids to give.
struct NextIds {
  JobId job = 1;
  SeriesId series = 1;
  LayoutId layout = 1;

  friend bool operator==(const NextIds&, const NextIds&) = default;
};
std::string EncodeNextIds(const NextIds& next);
std::optional<NextIds> DecodeNextIds(absl::string_view bytes);

// 'M'.
std::string EncodeMetric(const Metric& metric);
std::optional<Metric> DecodeMetric(absl::string_view bytes);

// 'S': the series that one registration brought, all of one source, with consecutive ids from the
// key's on. A decoded record points into its bytes.
struct SeriesRecord {
  uint64_t series_before = 0;  // Series that the job had when these came.
  std::optional<uint32_t> task;
  absl::string_view host;
  std::vector<std::vector<LabelSet::Label>> label_sets;  // Each distinct set once.
  struct One {
    MetricId metric = 0;
    uint32_t labels = 0;  // Which of the sets.

    friend bool operator==(const One&, const One&) = default;
  };
  std::vector<One> series;  // Not empty.

  friend bool operator==(const SeriesRecord&, const SeriesRecord&) = default;
};
std::string EncodeSeriesRecord(const SeriesRecord& record);
std::optional<SeriesRecord> DecodeSeriesRecord(absl::string_view bytes);

// 'L'.
struct LayoutRecord {
  uint32_t attempt = 0;
  bool has_steps = false;
  // Its series, column by column, as ranges of ids: the first, and how many.
  std::vector<std::pair<SeriesId, uint64_t>> ranges;  // Not empty, and none is.

  void Add(SeriesId id);
  uint64_t columns() const;

  friend bool operator==(const LayoutRecord&, const LayoutRecord&) = default;
};
std::string EncodeLayoutRecord(const LayoutRecord& record);
std::optional<LayoutRecord> DecodeLayoutRecord(absl::string_view bytes);

// Fills an empty catalogue with the metrics, series and layouts of its job.
//   DATA_LOSS    a record is damaged or refers to one that is not there; the text names its key.
//   UNAVAILABLE  the disk refused to be read.
absl::Status LoadCatalog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index, JobCatalog* catalog);

// How many series a job has, from its last record alone. As above.
absl::StatusOr<uint64_t> CountSeries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                     JobId job);

// How many metrics, the same way.
absl::StatusOr<uint64_t> CountMetrics(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                      JobId job);

// How many columns a layout has. As above; NOT_FOUND if there is no such layout.
absl::StatusOr<uint64_t> CountColumns(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                      JobId job, LayoutId layout);

}  // namespace tacho::storage

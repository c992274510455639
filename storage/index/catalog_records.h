// Reads what a job has in the column family "index".
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/index/job_catalog.h"
#include "storage/model/series.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
}  // namespace rocksdb

namespace tacho::storage {

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

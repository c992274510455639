// The newest value of every column of one layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/series.h"

namespace tacho::storage {

// Not thread-safe. Eight bytes a column as long as rows have a value in every column; where some
// have not, each column also says which row its value is from.
class LatestValues {
 public:
  // Takes over what the rows of an entry have that is not older than what is there. Rows older than
  // the newest row seen change nothing.
  void Include(const RowsEntry& entry, absl::Time received);

  // The column's newest value is none any more, unless it is newer than `time_ns`.
  void End(size_t column, int64_t time_ns);

  bool empty() const { return values_.empty(); }
  // The newest row, and what it has of a column: the stale marker if nothing.
  struct Newest {
    int64_t time_ns = INT64_MIN;
    int64_t step = kNoStep;
    double value = 0;
  };
  Newest NewestRow(size_t column) const;
  // Valid until the next Include().
  LatestRow View(const LayoutPtr& layout) const;

 private:
  void IncludeSparse(const RowsEntry& entry, size_t newest, absl::Time received);
  void DropUnusedStamps();

  int64_t step_ = kNoStep;
  LatestRow::Stamp newest_ = {INT64_MIN, absl::InfinitePast()};
  std::vector<double> values_;
  // Empty while all values are from the newest row. Else stamps_ describes rows, stamp_of_ has the
  // index of one of them for each column.
  std::vector<LatestRow::Stamp> stamps_;
  std::vector<uint32_t> stamp_of_;
};

}  // namespace tacho::storage

// The newest values of every layout, copied out of the store in one go, so that appends do not wait
// for the computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "storage/store.h"

namespace tacho::server::aggregate {

struct CopiedRow {
  storage::LayoutPtr layout;
  const storage::SeriesSource* source = nullptr;
  storage::JobId job = 0;
  bool full = false;  // No value is a stale marker.
  bool copy = false;  // Another collector counts it: here it is only bound to jobs of its host.
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  absl::Time received;
  // One a column; the stale marker where the newest value is older than `fresh_from`. Empty if the
  // whole row is. May be written to.
  std::span<double> values;
  // When the columns' values are of several rows: the time of each. Else empty.
  std::vector<int64_t> times;

  int64_t Time(size_t column) const { return times.empty() ? time_ns : times[column]; }
};

// One thread at a time.
class LatestCopy {
 public:
  // Rows received before `fresh_from` have no values. The rows of a job are adjacent, and within it
  // the rows of a source.
  LatestCopy(const storage::Store& store, absl::Time fresh_from);

  std::vector<CopiedRow>& rows() { return rows_; }

 private:
  void Add(const storage::LatestRow& row, absl::Time fresh_from);
  void Order();
  std::span<double> Allocate(size_t values);

  std::vector<CopiedRow> rows_;
  std::vector<std::unique_ptr<double[]>> blocks_;
  size_t left_ = 0;  // Values that still fit into the last block.
  size_t used_ = 0;
};

}  // namespace tacho::server::aggregate

// Where the samples of a matrix lie, and the columns that follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/query/read/reduce.h"
#include "server/query/read/sample.h"
#include "storage/model/series_reader.h"

namespace tacho::server::view {

// Columns of equal width over one stretch of the axis.
struct MatrixGrid {
  query::BucketGrid buckets;
  int64_t first_position = 0;
  uint64_t width = 0;
  uint32_t columns = 0;
};

// Looks at all series of all rows before they are read. Along steps it passes over samples without
// one. Not thread-safe.
class MatrixSurvey {
 public:
  explicit MatrixSurvey(bool by_step) : by_step_(by_step) {}

  // The samples or summaries that it needs of the next chunk: along steps the samples, until no
  // step is left out between two; then summaries with step bounds.
  const storage::Want& wanted() const;
  void Add(const storage::Chunk& chunk);
  void EndSeries();
  void EndRow();

  bool empty() const { return extent_.empty(); }
  // At most `max_columns`, over all samples; `asked`, which has all of them, is the stretch to
  // cover instead. The survey is not empty.
  MatrixGrid Grid(uint32_t max_columns, const std::optional<query::AxisExtent>& asked) const;

 private:
  void AddStep(int64_t step);
  void AddTimes(const storage::Chunk& chunk);
  uint64_t MinWidth() const;

  const bool by_step_;
  query::AxisExtent extent_;

  // Along steps: the greatest number that divides the distance between any two.
  int64_t newest_step_ = 0;
  uint64_t spacing_ = 0;

  // Along time, in ns: from one sample to the next, of each chunk of the series.
  std::vector<uint64_t> chunk_intervals_ns_;
  uint64_t row_interval_ns_ = 0;            // That of its densest series; 0: none is known.
  std::vector<uint64_t> row_intervals_ns_;  // Those that are known.
};

}  // namespace tacho::server::view

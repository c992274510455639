// The cells of a matrix: of one row while its series are read, then of all rows as they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "server/query/read/reduce.h"
#include "storage/model/series_reader.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::view {

struct MatrixCell {
  uint64_t finite = 0;
  bool non_finite = false;
  // Over the finite samples.
  double min = 0;
  double max = 0;
  long double sum = 0;
  double last = 0;  // The newest along the axis, of equal ones the newest in time.
  std::pair<int64_t, int64_t> last_at;  // Its position and time.

  bool empty() const { return finite == 0 && !non_finite; }
  // MIN, MAX, AVG or LAST, NaN without a finite sample. A value that a float cannot hold becomes
  // its largest.
  float Value(v1::BucketValue value) const;
};

// Not thread-safe.
class MatrixRowCells {
 public:
  // All samples lie in the grid.
  MatrixRowCells(const query::BucketGrid& grid, uint32_t columns, bool by_step)
      : grid_(grid), by_step_(by_step), cells_(columns) {}

  // The next chunk of one of the row's series; series may come in any order. A summary lies in one
  // column of time.
  void Add(const storage::Chunk& chunk);
  // Whole summaries that lie in one column of time, and no others.
  storage::Want wanted() const;

  std::span<const MatrixCell> cells() const { return cells_; }
  uint64_t samples() const { return samples_; }  // Since Clear().
  void Clear();

 private:
  void AddByTime(const storage::SampleColumns& columns);
  void AddByStep(const storage::SampleColumns& columns);
  void AddByTime(const storage::SampleSummary& summary);
  // Samples [begin, end), which lie in this cell.
  void AddRun(const storage::SampleColumns& columns, size_t begin, size_t end, MatrixCell* cell);

  const query::BucketGrid& grid_;
  const bool by_step_;
  std::vector<MatrixCell> cells_;
  uint64_t samples_ = 0;
};

// The finished cells of all rows. Not thread-safe.
class MatrixTable {
 public:
  // Derived from the cells of a row.
  struct Row {
    uint32_t first_column = 0;
    uint32_t last_column = 0;
    uint32_t holes = 0;
    uint32_t non_finite = 0;  // Cells.
    double score = 0;         // Set by FindScores().
  };

  MatrixTable(uint32_t columns, v1::BucketValue value) : columns_(columns), value_(value) {}

  // Appends the row, which has a sample.
  void AddRow(std::span<const MatrixCell> cells);
  // Sets median, low and high of each column, then the rows' scores. Statuses are those of
  // control.Check().
  absl::Status FindScores(const query::QueryControl& control);

  const std::vector<Row>& rows() const { return rows_; }
  std::span<const float> ValuesOf(size_t row) const {
    return std::span(values_).subspan(row * columns_, columns_);
  }
  bool IsNonFinite(size_t row, uint32_t column) const {
    return non_finite_[row * columns_ + column];
  }
  const std::vector<float>& median() const { return median_; }
  const std::vector<float>& low() const { return low_; }
  const std::vector<float>& high() const { return high_; }

 private:
  void FindMedians(uint32_t begin_column, uint32_t end_column);
  double ScoreOf(size_t row) const;

  const uint32_t columns_;
  const v1::BucketValue value_;
  std::vector<Row> rows_;
  std::vector<float> values_;  // Row by row.
  std::vector<bool> non_finite_;
  std::vector<float> median_, low_, high_;
};

}  // namespace tacho::server::view

// Reads one series of a view: its open rows and its columns, day by day, merged as it goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/columns/column_cache.h"
#include "storage/columns/sample_run.h"
#include "storage/columns/stored_view.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

class StoredSeriesReader final : public SeriesReader {
 public:
  // The view is not owned and must outlive the reader.
  StoredSeriesReader(StoredView* view, SeriesPtr series, const ReadOptions& options);

  absl::StatusOr<bool> Next(const Want& want, Chunk* chunk) override;
  absl::StatusOr<std::optional<SampleEnds>> FindEnds() override;

 private:
  void OpenRuns();  // Begins runs of the open rows; called once.
  // Moves to the next column of the range, where it is not yet; false if there is none left.
  absl::StatusOr<bool> FindFront();
  const ColumnInfo& front() const { return columns_->columns()[index_]; }
  absl::StatusOr<DecodedColumnPtr> DecodeFront();
  void PassFront();
  // Nothing else of the range lies before the front column ends.
  bool FrontIsAlone() const;
  enum class Shown {
    kSome,       // The front column, or what is wanted of it. It is passed.
    kNothing,    // Nothing of it is wanted. It is passed.
    kNotAsItIs,  // It has to be merged.
  };
  // Shows the front column, which stands alone.
  absl::StatusOr<Shown> ShowFront(const Want& want, Chunk* chunk);
  // Summarises the front column by its header; nullopt if it must be decoded.
  absl::StatusOr<std::optional<SampleSummary>> SummariseFront(bool step_bounds) const;
  // Whether the range, which is one of times only, leaves out nothing of the column.
  bool IsWholeInRange(const ColumnInfo& column) const;
  absl::StatusOr<TimeColumnEnds> TimeEndsOf(size_t partition, const SeriesColumns& columns,
                                            size_t index) const;

  // --- For FindEnds(), by day: extend *ends, and return whether no other day can do so ----------
  absl::StatusOr<bool> FindFirst(size_t partition, std::optional<SampleEnds>* ends);
  absl::StatusOr<bool> FindLast(size_t partition, std::optional<SampleEnds>* ends);
  // The columns of a day that are left, and the index of the first.
  absl::StatusOr<std::pair<SeriesColumnsPtr, size_t>> ColumnsOf(size_t partition);
  bool ReachesIntoRange(const ColumnInfo& column) const;
  // The first and last wanted sample of a column; nullopt if nothing of it is wanted.
  absl::StatusOr<std::optional<SampleEnds>> EndsOf(size_t partition,
                                                   const SeriesColumnsPtr& columns, size_t index);

  // Rows of a column that are in the range of times.
  std::pair<size_t, size_t> RowsInRange(const DecodedColumn& column) const;
  // Whether a range of steps that was asked for leaves out none of these rows.
  bool StepsAreInRange(const FrameTimes& times) const;
  // Replaces *view with what is wanted of the column; false if that is not some rows as they are.
  bool Show(const DecodedColumnPtr& column, SampleView* view) const;
  SampleRun MakeRun(FramePosition position, const DecodedColumn& column) const;

  StoredView* const view_;
  const SeriesPtr series_;
  const ReadOptions options_;

  bool opened_ = false;
  std::vector<SampleRun> runs_;  // Begun, not empty: open rows and decoded columns.

  size_t partition_ = 0;  // Where columns_ are from, or the next to look into.
  SeriesColumnsPtr columns_;
  StoredView::MetBytes met_;
  size_t index_ = 0;          // The front column's place in columns_.
  DecodedColumnPtr decoded_;  // The front column; null: not yet asked for.
};

}  // namespace tacho::storage

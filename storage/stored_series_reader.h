// Reads one series of a view: its open rows and its columns, day by day, merged as it goes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/frame.h"
#include "storage/keys.h"
#include "storage/sample_run.h"
#include "storage/series_reader.h"
#include "storage/stored_view.h"

namespace tacho::storage {

class StoredSeriesReader final : public SeriesReader {
 public:
  // The view is not owned and must outlive the reader.
  StoredSeriesReader(StoredView* view, SeriesPtr series, const ReadOptions& options);
  ~StoredSeriesReader() override;

  absl::StatusOr<bool> Next(SampleBlock* block) override;
  absl::StatusOr<bool> NextSummary(absl::FunctionRef<bool(const SampleSummary&)> fits,
                                   SampleSummary* summary) override;

 private:
  // A frame's column, not yet decoded.
  struct Column {
    ValueColumnKey key;
    size_t partition = 0;
    std::string bytes;
    int64_t last_time_ns = 0;
  };

  void OpenRuns();  // Of the open rows; once.
  // Holds at least `count` columns in columns_ unless fewer are left.
  absl::Status Fetch(size_t count);
  // Moves to the next column of the range; nullopt if there is none left.
  absl::StatusOr<std::optional<Column>> FetchColumn();
  void LeavePartition();
  // What the front column says of itself; nullopt if it must be decoded.
  absl::StatusOr<std::optional<SampleSummary>> Summarise(const Column& column) const;
  absl::StatusOr<SampleRun> Decode(const Column& column) const;

  StoredView* const view_;
  const SeriesPtr series_;
  const ReadOptions options_;
  const std::string prefix_;

  bool opened_ = false;
  std::vector<SampleRun> runs_;  // Begun, not empty: open rows and decoded columns.

  size_t partition_ = 0;  // Where it_ is, or the next to look into.
  std::unique_ptr<rocksdb::Iterator> it_;
  std::deque<Column> columns_;  // Fetched, ascending in first time.
};

}  // namespace tacho::storage

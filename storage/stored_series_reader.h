// Reads a series from the head's copy of it and from the partitions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/frame.h"
#include "storage/partitions.h"
#include "storage/sample_merge.h"
#include "storage/series_reader.h"

namespace rocksdb {
class DB;
class Iterator;
class Snapshot;
}  // namespace rocksdb

namespace tacho::storage {

class StoredSeriesReader final : public SeriesReader {
 public:
  // `head` was copied before this call, so that a row sealed meanwhile is seen twice, not never.
  StoredSeriesReader(rocksdb::DB* db, std::vector<PartitionPtr> partitions, SeriesPtr series,
                     ReadOptions options, std::vector<MergeInput> head);
  ~StoredSeriesReader() override;

  absl::StatusOr<bool> Next(SampleBlock* block) override;

 private:
  // A frame's column, not yet decoded.
  struct Column {
    ValueColumnKey key;
    std::string bytes;
    int64_t last_time_ns = 0;
  };

  // Moves to the next column that overlaps the range; false if there is none left.
  absl::StatusOr<bool> FetchColumn();
  absl::StatusOr<MergeInput> Decode(const Column& column) const;
  // Adds the head's samples up to `last_time_ns` that were not taken before.
  void TakeHead(int64_t last_time_ns, std::vector<MergeInput>* inputs);

  rocksdb::DB* const db_;
  const std::vector<PartitionPtr> partitions_;
  const SeriesPtr series_;
  const ReadOptions options_;
  const std::string prefix_;
  const rocksdb::Snapshot* const snapshot_;

  // The head's samples, and in which order of time they are taken.
  const std::vector<MergeInput> head_;
  struct HeadSample {
    int64_t time_ns = 0;
    size_t input = 0;
    size_t row = 0;
  };
  std::vector<HeadSample> head_order_;
  size_t head_next_ = 0;

  size_t next_partition_ = 0;
  std::unique_ptr<rocksdb::Iterator> it_;
  std::optional<Column> pending_;  // Fetched, not yet part of a block.
};

}  // namespace tacho::storage

// The store's ReadView: one RocksDB snapshot, the open rows of some series, and what their readers
// share so that a walk over one metric costs one iterator a day and decodes a time column once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "rocksdb/slice.h"
#include "storage/captured_rows.h"
#include "storage/frame.h"
#include "storage/head_column.h"
#include "storage/partitions.h"
#include "storage/series_reader.h"

namespace rocksdb {
class DB;
class Iterator;
class Snapshot;
}  // namespace rocksdb

namespace tacho::storage {

class StoredView final : public ReadView {
 public:
  // The open rows were captured before this call, so that rows sealed meanwhile are seen twice,
  // which merging undoes, not never. `db` is not owned and must outlive the view.
  StoredView(rocksdb::DB* db, std::vector<PartitionPtr> partitions, CapturedRows open_rows);
  ~StoredView() override;

  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) override;

  // --- For the view's readers ------------------------------------------------------------------

  const std::vector<PartitionPtr>& partitions() const { return partitions_; }  // Ascending.
  // Open rows of a series; valid until the next call.
  std::span<const HeadColumn> FindOpenRows(const Series& series) { return open_rows_.Find(series); }
  const rocksdb::Snapshot* snapshot() const { return snapshot_; }
  // An iterator over a partition, to be given back: seeking one again is cheaper than making one.
  std::unique_ptr<rocksdb::Iterator> BorrowIterator(size_t partition);
  void ReturnIterator(size_t partition, std::unique_ptr<rocksdb::Iterator> it);
  // The time column of the frame of a value column.
  //   DATA_LOSS  there is none, or it is damaged.
  absl::StatusOr<std::shared_ptr<const TimeColumn>> FindTimeColumn(size_t partition,
                                                                   LayoutId layout,
                                                                   const ValueColumnKey& key);
  // What the time column says without being decoded.
  absl::StatusOr<TimeColumnEnds> FindTimeColumnEnds(size_t partition, LayoutId layout,
                                                    const ValueColumnKey& key);

 private:
  // Reads the time column under a key.
  absl::StatusOr<rocksdb::PinnableSlice> ReadTimeColumn(size_t partition, const std::string& key);

  rocksdb::DB* const db_;
  const std::vector<PartitionPtr> partitions_;
  CapturedRows open_rows_;
  const rocksdb::Snapshot* const snapshot_;
  std::vector<std::unique_ptr<rocksdb::Iterator>> iterators_;  // One a partition; null: lent, none.
  // The series of a layout follow one another, and their frames share time columns.
  absl::flat_hash_map<std::string, std::shared_ptr<const TimeColumn>> time_columns_;  // By key.
  std::deque<std::string> time_columns_in_order_;  // Of coming; the oldest leaves first.
};

}  // namespace tacho::storage

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
#include "storage/codec/frame.h"
#include "storage/columns/column_cache.h"
#include "storage/db/partitions.h"
#include "storage/head/captured_rows.h"
#include "storage/head/row_block.h"
#include "storage/history/bucket_days.h"
#include "storage/model/series_reader.h"

namespace rocksdb {
class DB;
class Iterator;
class Snapshot;
}  // namespace rocksdb

namespace tacho::storage {

struct Database;

// Where the columns of a day are. Not both are null.
class StoredDay {
 public:
  StoredDay(PartitionPtr local, BucketDayPtr remote)
      : day_(local != nullptr ? local->day() : remote->day()),
        local_(std::move(local)),
        remote_(std::move(remote)) {}

  int64_t day() const { return day_; }
  const PartitionPtr& local() const { return local_; }
  // Null also where the disk has all of the day.
  const BucketDayPtr& remote() const { return remote_; }

 private:
  int64_t day_;
  PartitionPtr local_;
  BucketDayPtr remote_;
};

class StoredView final : public ReadView {
 public:
  // `elsewhere` has the days that are in a bucket; null: there is none. The open rows were captured
  // before this call, so that rows sealed meanwhile are seen twice, which merging undoes, and never
  // missed. The database, `elsewhere` and `columns` must outlive the view. `amount` is what will be
  // read of each day.
  StoredView(const Database& database, BucketDays* elsewhere, ColumnCache* columns,
             CapturedRows open_rows, ReadAmount amount);
  ~StoredView() override;

  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) override;

  uint64_t columns_decoded() const override { return columns_decoded_; }

  // --- For the view's readers ------------------------------------------------------------------

  const std::vector<StoredDay>& partitions() const { return partitions_; }  // Ascending.
  // Open rows of a series; valid until the next call.
  std::span<const HeadColumn> FindOpenRows(const Series& series) { return open_rows_.Find(series); }
  const rocksdb::Snapshot* snapshot() const { return snapshot_; }

  // Encoded columns that were met on the way, by their place in the list; those that were not have
  // none.
  using MetBytes = std::vector<std::string>;
  // The columns of a series in a partition. If they are not known yet, *met becomes what was met of
  // those with times in the range of `options`, up to a bound; else it becomes empty.
  //   DATA_LOSS    one is damaged, or what holds it in the bucket is gone.
  //   UNAVAILABLE  the bucket does not answer. So also below.
  absl::StatusOr<SeriesColumnsPtr> FindColumns(size_t partition, const Series& series,
                                               const ReadOptions& options, MetBytes* met);
  // One of them with its values and times, found with the same options. `met` may be empty.
  //   DATA_LOSS  it is damaged, or its time column is not there.
  absl::StatusOr<DecodedColumnPtr> FindDecoded(size_t partition, const Series& series,
                                               const SeriesColumnsPtr& columns, size_t index,
                                               const ReadOptions& options, const MetBytes& met);
  // The times of one of them.
  absl::StatusOr<FrameTimesPtr> FindTimes(size_t partition, const Series& series,
                                          const ColumnInfo& column);
  // The parts that can be read without decoding the column.
  absl::StatusOr<TimeColumnEnds> FindTimeColumnEnds(size_t partition, const Series& series,
                                                    const ColumnInfo& column);

 private:
  // An iterator over a partition: seeking one again is cheaper than making one.
  absl::StatusOr<rocksdb::Iterator*> IteratorOf(size_t partition);
  // Reads a column under a key.
  absl::StatusOr<rocksdb::PinnableSlice> ReadColumn(size_t partition, const std::string& key,
                                                    absl::string_view kind);
  // A time column as it is stored; valid until the next call. Who asked for its ends often asks for
  // its times next.
  absl::StatusOr<absl::string_view> ReadTimeColumn(size_t partition, const std::string& key);
  absl::StatusOr<std::vector<ColumnInfo>> ListColumns(size_t partition, const Series& series,
                                                      const ReadOptions& options, MetBytes* met);
  // Whether what was found for a reader is kept for the next.
  bool Keeps(const ReadOptions& options) const {
    return !options.read_once || cache_->IsHalfEmpty();
  }
  absl::StatusOr<DecodedColumnPtr> Decode(size_t partition, const Series& series,
                                          const ColumnInfo& column, absl::string_view bytes);

  rocksdb::DB* const db_;
  BucketDays* const elsewhere_;  // Null: none.
  const ReadAmount amount_;
  ColumnCache* const cache_;
  ColumnMoment moment_;  // Begun before what follows.
  const std::vector<StoredDay> partitions_;
  CapturedRows open_rows_;
  const rocksdb::Snapshot* const snapshot_;
  uint64_t columns_decoded_ = 0;
  std::vector<std::unique_ptr<rocksdb::Iterator>> iterators_;  // One a partition; null: none yet.
  std::string read_key_;  // Key of read_bytes_, the time column that was read last.
  rocksdb::PinnableSlice read_bytes_;
  // The series of a layout follow one another, and their frames share time columns.
  absl::flat_hash_map<std::string, FrameTimesPtr> times_;  // By key.
  std::deque<std::string> times_in_order_;  // Keys as they came; the oldest leaves first.
};

}  // namespace tacho::storage

#include "storage/stored_view.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"
#include "storage/stored_series_reader.h"

namespace tacho::storage {
namespace {

// A few days of a layout's time columns: at 1,024 rows some megabytes.
constexpr size_t kTimeColumnsKept = 256;

}  // namespace

StoredView::StoredView(rocksdb::DB* db, std::vector<PartitionPtr> partitions,
                       CapturedRows open_rows)
    : db_(db),
      partitions_(std::move(partitions)),
      open_rows_(std::move(open_rows)),
      snapshot_(db->GetSnapshot()),
      iterators_(partitions_.size()) {}

StoredView::~StoredView() {
  iterators_.clear();
  db_->ReleaseSnapshot(snapshot_);
}

std::unique_ptr<SeriesReader> StoredView::Read(const SeriesPtr& series,
                                               const ReadOptions& options) {
  return std::make_unique<StoredSeriesReader>(this, series, options);
}

std::unique_ptr<rocksdb::Iterator> StoredView::BorrowIterator(size_t partition) {
  if (iterators_[partition] != nullptr) return std::move(iterators_[partition]);
  rocksdb::ReadOptions read;
  read.snapshot = snapshot_;
  return std::unique_ptr<rocksdb::Iterator>(
      db_->NewIterator(read, partitions_[partition]->handle()));
}

void StoredView::ReturnIterator(size_t partition, std::unique_ptr<rocksdb::Iterator> it) {
  iterators_[partition] = std::move(it);
}

absl::StatusOr<rocksdb::PinnableSlice> StoredView::ReadTimeColumn(size_t partition,
                                                                  const std::string& key) {
  rocksdb::ReadOptions read;
  read.snapshot = snapshot_;
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status status = db_->Get(read, partitions_[partition]->handle(), key, &bytes);
  if (status.IsNotFound()) {
    return absl::DataLossError(absl::StrCat("the time column ", absl::BytesToHexString(key), " of ",
                                            PartitionName(partitions_[partition]->day()),
                                            " is missing"));
  }
  if (!status.ok()) return FromRocksDb(status, "read a time column");
  return bytes;
}

absl::StatusOr<TimeColumnEnds> StoredView::FindTimeColumnEnds(size_t partition, LayoutId layout,
                                                              const ValueColumnKey& key) {
  const auto bytes =
      ReadTimeColumn(partition, TimeColumnKey(key.job, layout, key.first_time_ns, key.position));
  if (!bytes.ok()) return bytes.status();
  return DecodeTimeColumnEnds(View(*bytes));
}

absl::StatusOr<std::shared_ptr<const TimeColumn>> StoredView::FindTimeColumn(
    size_t partition, LayoutId layout, const ValueColumnKey& column) {
  // The first time names the day, so keys of two partitions differ.
  std::string key = TimeColumnKey(column.job, layout, column.first_time_ns, column.position);
  if (const auto found = time_columns_.find(key); found != time_columns_.end()) {
    return found->second;
  }
  const auto bytes = ReadTimeColumn(partition, key);
  if (!bytes.ok()) return bytes.status();
  auto decoded = DecodeTimeColumn(View(*bytes));
  if (!decoded.ok()) {
    return absl::DataLossError(absl::StrCat("the time column ", absl::BytesToHexString(key), " of ",
                                            PartitionName(partitions_[partition]->day()), ": ",
                                            decoded.status().message()));
  }
  auto times = std::make_shared<const TimeColumn>(*std::move(decoded));
  if (time_columns_in_order_.size() == kTimeColumnsKept) {
    time_columns_.erase(time_columns_in_order_.front());
    time_columns_in_order_.pop_front();
  }
  time_columns_in_order_.push_back(key);
  time_columns_[std::move(key)] = times;
  return times;
}

}  // namespace tacho::storage

// Looks in the cache of columns first, then in RocksDB, and keeps the bytes that a listing has met:
// a caller that lists columns mostly decodes them next.
#include "storage/columns/stored_view.h"

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/columns/stored_series_reader.h"
#include "storage/db/database.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// A few days of a layout's time columns: at 1,024 rows some megabytes.
constexpr size_t kTimeColumnsKept = 256;
// Bound for the columns of one series in one day.
constexpr size_t kMetBytes = size_t{1} << 20;

std::string KeyOfTimes(const Series& series, const ColumnInfo& column) {
  return TimeColumnKey(series.job_id, column.layout, column.first_time_ns, column.position);
}

// A day leaves the disk only once the bucket has it. So what is on the disk is looked at first:
// then no day is missed, whatever moves meanwhile.
std::vector<StoredDay> DaysOf(const Database& database, const BucketDays* elsewhere) {
  std::vector<StoredDay> days;
  const std::vector<PartitionPtr> local = database.partitions->Between(INT64_MIN, INT64_MAX);
  auto next = local.begin();
  if (elsewhere != nullptr) {
    const auto picture = elsewhere->picture();
    for (const BucketDayPtr& remote : picture->days) {
      for (; next != local.end() && (*next)->day() < remote->day(); ++next) {
        days.emplace_back(*next, nullptr);
      }
      PartitionPtr same;
      if (next != local.end() && (*next)->day() == remote->day()) same = *next++;
      const bool whole = same != nullptr && same->day() >= picture->whole_from;
      days.emplace_back(std::move(same), whole ? nullptr : remote);
    }
  }
  for (; next != local.end(); ++next) days.emplace_back(*next, nullptr);
  return days;
}

}  // namespace

StoredView::StoredView(const Database& database, BucketDays* elsewhere, ColumnCache* columns,
                       CapturedRows open_rows, ReadAmount amount)
    : db_(database.db.get()),
      elsewhere_(elsewhere),
      amount_(amount),
      cache_(columns),
      moment_(*cache_),
      partitions_(DaysOf(database, elsewhere)),
      open_rows_(std::move(open_rows)),
      snapshot_(db_->GetSnapshot()),
      iterators_(partitions_.size()) {
  moment_.End(*cache_);
}

StoredView::~StoredView() {
  iterators_.clear();
  db_->ReleaseSnapshot(snapshot_);
}

std::unique_ptr<SeriesReader> StoredView::Read(const SeriesPtr& series,
                                               const ReadOptions& options) {
  return std::make_unique<StoredSeriesReader>(this, series, options);
}

absl::StatusOr<rocksdb::Iterator*> StoredView::IteratorOf(size_t partition) {
  std::unique_ptr<rocksdb::Iterator>& it = iterators_[partition];
  if (it != nullptr) return it.get();
  const StoredDay& day = partitions_[partition];
  std::unique_ptr<rocksdb::Iterator> local;
  if (day.local() != nullptr) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot_;
    local.reset(db_->NewIterator(read, day.local()->handle()));
  }
  if (day.remote() == nullptr) {
    it = std::move(local);
  } else {
    TACHO_ASSIGN_OR_RETURN(it, elsewhere_->NewIterator(*day.remote(), std::move(local), amount_));
  }
  return it.get();
}

absl::StatusOr<rocksdb::PinnableSlice> StoredView::ReadColumn(size_t partition,
                                                              const std::string& key,
                                                              absl::string_view kind) {
  const StoredDay& day = partitions_[partition];
  rocksdb::PinnableSlice bytes;
  rocksdb::Status status;
  if (day.remote() == nullptr) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot_;
    status = db_->Get(read, day.local()->handle(), key, &bytes);
  } else {
    TACHO_ASSIGN_OR_RETURN(rocksdb::Iterator* const it, IteratorOf(partition));
    it->Seek(key);
    status = it->status();
    if (status.ok() && (!it->Valid() || it->key() != key)) status = rocksdb::Status::NotFound();
    if (status.ok()) bytes.PinSelf(it->value());
  }
  if (status.IsNotFound()) {
    return absl::DataLossError(absl::StrCat("the ", kind, " ", absl::BytesToHexString(key), " of ",
                                            PartitionName(day.day()), " is missing"));
  }
  if (!status.ok()) return FromRocksDb(status, absl::StrCat("read a ", kind));
  return bytes;
}

absl::StatusOr<absl::string_view> StoredView::ReadTimeColumn(size_t partition,
                                                             const std::string& key) {
  if (key != read_key_) {
    read_key_.clear();
    TACHO_ASSIGN_OR_RETURN(auto bytes, ReadColumn(partition, key, "time column"));
    read_bytes_ = std::move(bytes);
    read_key_ = key;
  }
  return View(read_bytes_);
}

absl::StatusOr<std::vector<ColumnInfo>> StoredView::ListColumns(size_t partition,
                                                                const Series& series,
                                                                const ReadOptions& options,
                                                                MetBytes* met) {
  const std::string prefix = ValueColumnKey::SeriesPrefix(series);
  const int64_t day = partitions_[partition].day();
  TACHO_ASSIGN_OR_RETURN(rocksdb::Iterator* const it, IteratorOf(partition));
  std::vector<ColumnInfo> columns;
  size_t met_bytes = 0;
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto key = ValueColumnKey::Decode(View(it->key()));
    if (!key) return absl::DataLossError("a column key is damaged: " + it->key().ToString(true));
    TACHO_ASSIGN_OR_RETURN(const auto header,
                           DecodeValueColumnHeader(key->first_time_ns, View(it->value())));
    if (header.last_time_ns < key->first_time_ns) {
      return absl::DataLossError(absl::StrCat("series ", series.id, ", frame at ",
                                              key->first_time_ns, " ns: it ends before it begins"));
    }
    // Readers go from day to day, and find the ends of a series by that.
    if (DayOf(key->first_time_ns) != day || DayOf(header.last_time_ns) != day) {
      return absl::DataLossError(absl::StrCat("series ", series.id, ", frame at ",
                                              key->first_time_ns, " ns: it is not of its day"));
    }
    columns.push_back({key->first_time_ns, key->position, header.layout, header.last_time_ns,
                       header.rows, header.stats});
    const bool wanted = header.last_time_ns >= options.begin_ns &&
                        (options.end_ns == INT64_MAX || key->first_time_ns < options.end_ns);
    if (!wanted || met_bytes + it->value().size() > kMetBytes) continue;
    met_bytes += it->value().size();
    met->resize(columns.size());
    met->back() = it->value().ToString();
  }
  if (!it->status().ok()) return FromRocksDb(it->status(), "read columns");
  return columns;
}

absl::StatusOr<SeriesColumnsPtr> StoredView::FindColumns(size_t partition, const Series& series,
                                                         const ReadOptions& options,
                                                         MetBytes* met) {
  met->clear();
  const int64_t day = partitions_[partition].day();
  const auto count = moment_.Of(series);
  if (count) {
    if (SeriesColumnsPtr known = cache_->Find(day, series.id, *count)) return known;
  }
  TACHO_ASSIGN_OR_RETURN(auto listed, ListColumns(partition, series, options, met));
  auto columns = std::make_shared<SeriesColumns>(std::move(listed));
  if (count && Keeps(options)) cache_->Put(day, series.id, *count, columns);
  return columns;
}

absl::StatusOr<DecodedColumnPtr> StoredView::FindDecoded(size_t partition, const Series& series,
                                                         const SeriesColumnsPtr& columns,
                                                         size_t index, const ReadOptions& options,
                                                         const MetBytes& met) {
  if (DecodedColumnPtr known = columns->Decoded(index)) return known;
  ++columns_decoded_;
  const ColumnInfo& column = columns->columns()[index];
  absl::StatusOr<DecodedColumnPtr> decoded;
  if (index < met.size() && !met[index].empty()) {
    decoded = Decode(partition, series, column, met[index]);
  } else {
    const ValueColumnKey key{series.job_id, series.metric_id, series.id, column.first_time_ns,
                             column.position};
    TACHO_ASSIGN_OR_RETURN(const auto bytes, ReadColumn(partition, key.Encode(), "column"));
    decoded = Decode(partition, series, column, View(bytes));
  }
  if (decoded.ok() && Keeps(options)) {
    cache_->PutDecoded(partitions_[partition].day(), series.id, columns, index, *decoded);
  }
  return decoded;
}

absl::StatusOr<DecodedColumnPtr> StoredView::Decode(size_t partition, const Series& series,
                                                    const ColumnInfo& column,
                                                    absl::string_view bytes) {
  const auto damaged = [&](auto... what) {
    return absl::DataLossError(
        absl::StrCat("series ", series.id, ", frame at ", column.first_time_ns, " ns: ", what...));
  };
  TACHO_ASSIGN_OR_RETURN(const auto header, DecodeValueColumnHeader(column.first_time_ns, bytes));
  auto times = FindTimes(partition, series, column);
  if (!times.ok()) return times.status();
  if ((*times)->column.times.size() != header.rows) {
    return damaged(header.rows, " values for ", (*times)->column.times.size(), " times");
  }
  // What readers take for granted of rows, and of headers instead of rows.
  const std::vector<int64_t>& each = (*times)->column.times;
  if (each.front() != column.first_time_ns || each.back() != header.last_time_ns ||
      !((*times)->ascend || std::is_sorted(each.begin(), each.end()))) {
    return damaged("its times are not those that its key and its header give");
  }
  auto decoded = std::make_shared<DecodedColumn>();
  decoded->times = *std::move(times);
  if (absl::Status status =
          ColumnCodec::DecodeValues(header.encoded, header.rows, &decoded->values);
      !status.ok()) {
    return damaged(status.message());
  }
  size_t missing = 0;
  for (const double value : decoded->values) {
    missing += IsStaleMarker(value) ? 1 : 0;
  }
  decoded->whole = missing == 0;
  return decoded;
}

absl::StatusOr<TimeColumnEnds> StoredView::FindTimeColumnEnds(size_t partition,
                                                              const Series& series,
                                                              const ColumnInfo& column) {
  const int64_t day = partitions_[partition].day();
  const auto count = moment_.Of(series);
  if (count) {
    const auto known =
        cache_->FindTimes(day, column.layout, column.first_time_ns, column.position, *count);
    if (known) return known->ends;
  }
  TACHO_ASSIGN_OR_RETURN(const auto bytes, ReadTimeColumn(partition, KeyOfTimes(series, column)));
  auto ends = DecodeTimeColumnEnds(bytes);
  if (ends.ok() && count) {
    cache_->PutTimes(day, column.layout, column.first_time_ns, column.position, *count,
                     {.ends = *ends});
  }
  return ends;
}

absl::StatusOr<FrameTimesPtr> StoredView::FindTimes(size_t partition, const Series& series,
                                                    const ColumnInfo& column) {
  // The first time names the day, so keys of two partitions differ.
  std::string key = KeyOfTimes(series, column);
  if (const auto found = times_.find(key); found != times_.end()) return found->second;
  const int64_t day = partitions_[partition].day();
  const auto count = moment_.Of(series);
  FrameTimesPtr times;
  if (count) {
    const auto known =
        cache_->FindTimes(day, column.layout, column.first_time_ns, column.position, *count);
    if (known) times = known->times;
  }
  if (times == nullptr) {
    TACHO_ASSIGN_OR_RETURN(const auto bytes, ReadTimeColumn(partition, key));
    auto decoded = DecodeTimeColumn(bytes);
    const auto ends = DecodeTimeColumnEnds(bytes);
    if (!decoded.ok() || !ends.ok()) {
      return absl::DataLossError(
          absl::StrCat("the time column ", absl::BytesToHexString(key), " of ", PartitionName(day),
                       ": ", (decoded.ok() ? ends.status() : decoded.status()).message()));
    }
    times = cache_->MakeTimes(*std::move(decoded));
    if (count) {
      cache_->PutTimes(day, column.layout, column.first_time_ns, column.position, *count,
                       {.ends = *ends, .times = times});
    }
  }
  if (times_in_order_.size() == kTimeColumnsKept) {
    times_.erase(times_in_order_.front());
    times_in_order_.pop_front();
  }
  times_in_order_.push_back(key);
  times_[std::move(key)] = times;
  return times;
}

}  // namespace tacho::storage

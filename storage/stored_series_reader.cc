#include "storage/stored_series_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {

StoredSeriesReader::StoredSeriesReader(rocksdb::DB* db, std::vector<PartitionPtr> partitions,
                                       SeriesPtr series, ReadOptions options,
                                       std::vector<MergeInput> head)
    : db_(db),
      partitions_(std::move(partitions)),
      series_(std::move(series)),
      options_(options),
      prefix_(ValueColumnKey::SeriesPrefix(*series_)),
      snapshot_(db->GetSnapshot()),
      head_(std::move(head)) {
  for (size_t input = 0; input < head_.size(); ++input) {
    const auto& times = head_[input].samples.times;
    for (size_t row = 0; row < times.size(); ++row) head_order_.push_back({times[row], input, row});
  }
  std::stable_sort(head_order_.begin(), head_order_.end(),
                   [](const HeadSample& a, const HeadSample& b) { return a.time_ns < b.time_ns; });
}

StoredSeriesReader::~StoredSeriesReader() {
  it_.reset();
  db_->ReleaseSnapshot(snapshot_);
}

absl::StatusOr<bool> StoredSeriesReader::FetchColumn() {
  pending_.reset();
  for (;;) {
    if (it_ == nullptr) {
      if (next_partition_ == partitions_.size()) return false;
      rocksdb::ReadOptions read;
      read.snapshot = snapshot_;
      it_.reset(db_->NewIterator(read, partitions_[next_partition_]->handle()));
      it_->Seek(prefix_);
    } else {
      it_->Next();
    }
    if (!it_->Valid() || !it_->key().starts_with(prefix_)) {
      const rocksdb::Status status = it_->status();
      if (!status.ok()) return FromRocksDb(status, "read columns");
      it_.reset();
      ++next_partition_;
      continue;
    }
    const auto key = ValueColumnKey::Decode(View(it_->key()));
    if (!key) return absl::DataLossError("a column key is damaged: " + it_->key().ToString(true));
    if (key->first_time_ns >= options_.end_ns && options_.end_ns != INT64_MAX) {
      // Keys of a series ascend with time: nothing later in this day or after it is wanted.
      it_.reset();
      next_partition_ = partitions_.size();
      return false;
    }
    const auto header = DecodeValueColumnHeader(key->first_time_ns, View(it_->value()));
    if (!header.ok()) return header.status();
    if (header->last_time_ns < options_.begin_ns) continue;
    pending_ = Column{*key, it_->value().ToString(), header->last_time_ns};
    return true;
  }
}

absl::StatusOr<MergeInput> StoredSeriesReader::Decode(const Column& column) const {
  const auto header = DecodeValueColumnHeader(column.key.first_time_ns, column.bytes);
  if (!header.ok()) return header.status();
  const std::string time_key =
      TimeColumnKey(column.key.job, header->layout, column.key.first_time_ns, column.key.position);
  const int64_t day = DayOf(column.key.first_time_ns);
  const auto partition =
      std::find_if(partitions_.begin(), partitions_.end(),
                   [&](const PartitionPtr& candidate) { return candidate->day() == day; });
  if (partition == partitions_.end()) {
    return absl::DataLossError(absl::StrCat("a column of another day lies in the partitions read"));
  }
  rocksdb::ReadOptions read;
  read.snapshot = snapshot_;
  std::string bytes;
  const rocksdb::Status status = db_->Get(read, (*partition)->handle(), time_key, &bytes);
  if (status.IsNotFound()) {
    return absl::DataLossError(absl::StrCat("series ", column.key.series, ", frame at ",
                                            column.key.first_time_ns, " ns: no time column"));
  }
  if (!status.ok()) return FromRocksDb(status, "read a time column");
  auto times = DecodeTimeColumn(bytes);
  if (!times.ok()) return times.status();
  MergeInput input;
  input.position = column.key.position;
  if (times->times.size() != header->rows) {
    return absl::DataLossError(absl::StrCat("series ", column.key.series, ", frame at ",
                                            column.key.first_time_ns, " ns: ", header->rows,
                                            " values for ", times->times.size(), " times"));
  }
  if (absl::Status decoded =
          ColumnCodec::DecodeValues(header->encoded, header->rows, &input.samples.values);
      !decoded.ok()) {
    return decoded;
  }
  input.samples.attempts.assign(header->rows, times->attempt);
  input.samples.times = std::move(times->times);
  input.samples.steps = std::move(times->steps);
  return input;
}

void StoredSeriesReader::TakeHead(int64_t last_time_ns, std::vector<MergeInput>* inputs) {
  const size_t first = inputs->size();
  for (const MergeInput& input : head_) inputs->push_back({.position = input.position});
  for (; head_next_ < head_order_.size(); ++head_next_) {
    const HeadSample& next = head_order_[head_next_];
    if (next.time_ns > last_time_ns) return;
    const SampleBlock& from = head_[next.input].samples;
    SampleBlock& to = (*inputs)[first + next.input].samples;
    to.times.push_back(from.times[next.row]);
    to.steps.push_back(from.steps[next.row]);
    to.attempts.push_back(from.attempts[next.row]);
    to.values.push_back(from.values[next.row]);
  }
}

absl::StatusOr<bool> StoredSeriesReader::Next(SampleBlock* block) {
  block->clear();
  while (block->size() == 0) {
    if (!pending_) {
      const auto fetched = FetchColumn();
      if (!fetched.ok()) return fetched.status();
    }
    std::vector<MergeInput> inputs;
    int64_t last = INT64_MAX;
    if (pending_) {
      // All columns that overlap one another in time are merged together.
      last = pending_->last_time_ns;
      while (pending_ && pending_->key.first_time_ns <= last) {
        last = std::max(last, pending_->last_time_ns);
        auto decoded = Decode(*pending_);
        if (!decoded.ok()) return decoded.status();
        inputs.push_back(*std::move(decoded));
        const auto fetched = FetchColumn();
        if (!fetched.ok()) return fetched.status();
      }
    } else if (head_next_ == head_order_.size()) {
      return false;
    }
    TakeHead(last, &inputs);
    *block = MergeSamples(inputs, options_);
  }
  return true;
}

}  // namespace tacho::storage

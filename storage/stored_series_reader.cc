#include "storage/stored_series_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rocksdb/iterator.h"
#include "storage/job.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {
namespace {

// A column is of a day, and the day of its first time.
size_t FirstPartition(const std::vector<PartitionPtr>& partitions, int64_t begin_ns) {
  const auto found = std::lower_bound(
      partitions.begin(), partitions.end(), DayOf(begin_ns),
      [](const PartitionPtr& partition, int64_t day) { return partition->day() < day; });
  return static_cast<size_t>(found - partitions.begin());
}

void BoundSteps(const std::vector<int64_t>& steps, SampleSummary* summary) {
  Extent extent;
  for (const int64_t step : steps) extent.IncludeStep(step);
  summary->lowest_step = extent.first_step.value_or(kNoStep);
  summary->highest_step = extent.last_step.value_or(kNoStep);
}

}  // namespace

StoredSeriesReader::StoredSeriesReader(StoredView* view, SeriesPtr series,
                                       const ReadOptions& options)
    : view_(view),
      series_(std::move(series)),
      options_(options),
      prefix_(ValueColumnKey::SeriesPrefix(*series_)),
      partition_(FirstPartition(view->partitions(), options.begin_ns)) {}

StoredSeriesReader::~StoredSeriesReader() { LeavePartition(); }

void StoredSeriesReader::OpenRuns() {
  if (std::exchange(opened_, true)) return;
  for (const HeadColumn& piece : view_->FindOpenRows(*series_)) {
    SampleRun run(piece.position, piece.Decode(options_.begin_ns, options_.end_ns), options_);
    if (!run.empty()) runs_.push_back(std::move(run));
  }
}

void StoredSeriesReader::LeavePartition() {
  if (it_ != nullptr) view_->ReturnIterator(partition_, std::move(it_));
}

absl::StatusOr<std::optional<StoredSeriesReader::Column>> StoredSeriesReader::FetchColumn() {
  const auto& partitions = view_->partitions();
  while (partition_ < partitions.size()) {
    if (it_ == nullptr) {
      if (options_.end_ns != INT64_MAX && partitions[partition_]->day() > DayOf(options_.end_ns)) {
        break;
      }
      it_ = view_->BorrowIterator(partition_);
      it_->Seek(prefix_);
    } else {
      it_->Next();
    }
    if (!it_->Valid() || !it_->key().starts_with(prefix_)) {
      const rocksdb::Status status = it_->status();
      LeavePartition();
      if (!status.ok()) return FromRocksDb(status, "read columns");
      ++partition_;
      continue;
    }
    const auto key = ValueColumnKey::Decode(View(it_->key()));
    if (!key) return absl::DataLossError("a column key is damaged: " + it_->key().ToString(true));
    // Keys of a series ascend with time: nothing later in this day or after it is wanted.
    if (options_.end_ns != INT64_MAX && key->first_time_ns >= options_.end_ns) break;
    const auto header = DecodeValueColumnHeader(key->first_time_ns, View(it_->value()));
    if (!header.ok()) return header.status();
    if (header->last_time_ns < options_.begin_ns) continue;
    return Column{*key, partition_, it_->value().ToString(), header->last_time_ns};
  }
  LeavePartition();
  partition_ = partitions.size();
  return std::nullopt;
}

absl::Status StoredSeriesReader::Fetch(size_t count) {
  while (columns_.size() < count && partition_ < view_->partitions().size()) {
    auto column = FetchColumn();
    if (!column.ok()) return column.status();
    if (*column) columns_.push_back(**std::move(column));
  }
  return absl::OkStatus();
}

absl::StatusOr<SampleRun> StoredSeriesReader::Decode(const Column& column) const {
  const ValueColumnKey& key = column.key;
  const auto damaged = [&](auto... what) {
    return absl::DataLossError(
        absl::StrCat("series ", key.series, ", frame at ", key.first_time_ns, " ns: ", what...));
  };
  const auto header = DecodeValueColumnHeader(key.first_time_ns, column.bytes);
  if (!header.ok()) return header.status();
  const auto times = view_->FindTimeColumn(column.partition, header->layout, key);
  if (!times.ok()) return times.status();
  const TimeColumn& time = **times;
  if (time.times.size() != header->rows) {
    return damaged(header->rows, " values for ", time.times.size(), " times");
  }
  std::vector<double> values;
  if (absl::Status decoded = ColumnCodec::DecodeValues(header->encoded, header->rows, &values);
      !decoded.ok()) {
    return damaged(decoded.message());
  }
  // Rows of a frame ascend in time: those of the range are copied, the others not even looked at.
  const auto row_of = [&](int64_t time_ns) {
    return std::lower_bound(time.times.begin(), time.times.end(), time_ns) - time.times.begin();
  };
  const ptrdiff_t begin = row_of(options_.begin_ns);
  const ptrdiff_t end =
      options_.end_ns == INT64_MAX ? header->rows : std::max(begin, row_of(options_.end_ns));
  SampleBlock samples;
  samples.times.assign(time.times.begin() + begin, time.times.begin() + end);
  samples.steps.assign(time.steps.begin() + begin, time.steps.begin() + end);
  samples.attempts.assign(static_cast<size_t>(end - begin), time.attempt);
  if (begin == 0 && end == header->rows) {
    samples.values = std::move(values);
  } else {
    samples.values.assign(values.begin() + begin, values.begin() + end);
  }
  return SampleRun(key.position, std::move(samples), options_);
}

absl::StatusOr<bool> StoredSeriesReader::Next(SampleBlock* block) {
  OpenRuns();
  for (;;) {
    if (absl::Status status = Fetch(1); !status.ok()) return status;
    // Whatever comes before the next column begins can be merged now.
    const int64_t end_ns = columns_.empty() ? INT64_MAX : columns_.front().key.first_time_ns;
    if (TakeMerged(&runs_, end_ns, block)) return true;
    if (columns_.empty()) return false;
    auto run = Decode(columns_.front());
    if (!run.ok()) return run.status();
    columns_.pop_front();
    if (!run->empty()) runs_.push_back(*std::move(run));
  }
}

absl::StatusOr<std::optional<SampleSummary>> StoredSeriesReader::Summarise(
    const Column& column) const {
  const ValueColumnKey& key = column.key;
  if (options_.first_step || options_.last_step || key.first_time_ns < options_.begin_ns ||
      (column.last_time_ns >= options_.end_ns && options_.end_ns != INT64_MAX)) {
    return std::nullopt;
  }
  const auto header = DecodeValueColumnHeader(key.first_time_ns, column.bytes);
  if (!header.ok()) return header.status();
  const ColumnStats& stats = header->stats;
  // Rows without a value leave open when the first and the last came.
  if (stats.count != header->rows || stats.non_finite > 0 || !std::isfinite(stats.sum)) {
    return std::nullopt;
  }
  const auto ends = view_->FindTimeColumnEnds(column.partition, header->layout, key);
  if (!ends.ok()) return ends.status();
  if (options_.attempt && ends->attempt != *options_.attempt) return std::nullopt;
  SampleSummary summary;
  if (options_.bound_steps) {
    const auto times = view_->FindTimeColumn(column.partition, header->layout, key);
    if (!times.ok()) return times.status();
    BoundSteps((*times)->steps, &summary);
  }
  summary.attempt = ends->attempt;
  summary.first_time_ns = key.first_time_ns;
  summary.last_time_ns = column.last_time_ns;
  summary.first_step = ends->first_step;
  summary.last_step = ends->last_step;
  summary.first = stats.first;
  summary.last = stats.last;
  summary.count = stats.count;
  summary.min = stats.min;
  summary.max = stats.max;
  summary.sum = stats.sum;
  return summary;
}

absl::StatusOr<bool> StoredSeriesReader::NextSummary(
    absl::FunctionRef<bool(const SampleSummary&)> fits, SampleSummary* summary) {
  OpenRuns();
  if (absl::Status status = Fetch(2); !status.ok()) return status;
  if (columns_.empty()) return false;
  const Column& front = columns_.front();
  if (columns_.size() > 1 && columns_[1].key.first_time_ns <= front.last_time_ns) return false;
  for (const SampleRun& run : runs_) {
    if (run.next_time_ns() <= front.last_time_ns) return false;
  }
  const auto summarised = Summarise(front);
  if (!summarised.ok()) return summarised.status();
  if (!*summarised || !fits(**summarised)) return false;
  *summary = **summarised;
  columns_.pop_front();
  return true;
}

}  // namespace tacho::storage

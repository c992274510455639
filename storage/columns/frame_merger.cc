// Finds small frames of the last days, reads those that are due, and writes one frame in their
// place. One write deletes and puts, so that a crash leaves either the old frames or the new one.
#include "storage/columns/frame_merger.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// Values of a frame that is merged: 8 MB of doubles, and again while its columns are gathered.
constexpr size_t kValuesPerMerge = 1 << 20;
// Rests this many times as long as it has worked: at most a fifth of a core.
constexpr int kRest = 4;
// How often it looks for work.
constexpr absl::Duration kMergeRound = absl::Seconds(10);
// Time columns looked at in one piece of work.
constexpr size_t kKeysPerScan = 4096;

// The frames of a set as they lie in their day.
class Inputs {
 public:
  Inputs(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const Layout& layout,
         const MergeCandidates::Set& set)
      : db_(db), family_(family), layout_(layout), set_(set), snapshot_(db->GetSnapshot()) {}
  ~Inputs() { db_->ReleaseSnapshot(snapshot_); }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  // Reads them into *rows, and adds their removal to *write. Returns the position of a frame that
  // lies between them, so that they must not be merged; 0 if there is none.
  absl::StatusOr<FramePosition> Read(FrameRows* rows, rocksdb::WriteBatch* write);

 private:
  absl::Status ReadTimes(FrameRows* rows, rocksdb::WriteBatch* write);
  absl::StatusOr<FramePosition> ReadColumn(size_t column, FrameRows* rows,
                                           rocksdb::WriteBatch* write);
  absl::Status TakeValues(size_t input, size_t column, absl::string_view encoded, FrameRows* rows);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const Layout& layout_;
  const MergeCandidates::Set& set_;
  const rocksdb::Snapshot* const snapshot_;
  std::vector<size_t> first_row_;  // First row of each input, and the one behind the last.
  int64_t first_time_ = INT64_MAX;
  int64_t last_time_ = INT64_MIN;
  std::vector<double> values_;
};

absl::Status Inputs::ReadTimes(FrameRows* rows, rocksdb::WriteBatch* write) {
  rocksdb::ReadOptions read;
  read.snapshot = snapshot_;
  for (const FrameRef& frame : set_) {
    const std::string key = TimeColumnKey(layout_.series.front()->job_id, layout_.id,
                                          frame.first_time_ns, frame.position);
    rocksdb::PinnableSlice bytes;
    const rocksdb::Status status = db_->Get(read, family_, key, &bytes);
    if (!status.ok()) return FromRocksDb(status, "read a time column to be merged");
    const auto times = DecodeTimeColumn(View(bytes));
    if (!times.ok()) return times.status();
    const std::vector<int64_t>& each = times->times;
    if (each.front() != frame.first_time_ns || DayOf(each.front()) != frame.day ||
        DayOf(each.back()) != frame.day || !std::is_sorted(each.begin(), each.end())) {
      return absl::DataLossError("the times of the time column " +
                                 rocksdb::Slice(key).ToString(true) +
                                 " are not those that its key gives");
    }
    first_row_.push_back(rows->size());
    rows->times.insert(rows->times.end(), times->times.begin(), times->times.end());
    if (layout_.has_steps) {
      rows->steps.insert(rows->steps.end(), times->steps.begin(), times->steps.end());
    }
    first_time_ = std::min(first_time_, times->times.front());
    last_time_ = std::max(last_time_, times->times.back());
    write->Delete(family_, key);
  }
  first_row_.push_back(rows->size());
  return absl::OkStatus();
}

absl::Status Inputs::TakeValues(size_t input, size_t column, absl::string_view encoded,
                                FrameRows* rows) {
  TACHO_CHECK(input + 1 < first_row_.size() && column < layout_.series.size());
  const size_t count = first_row_[input + 1] - first_row_[input];
  absl::Status status = ColumnCodec::DecodeValues(encoded, count, &values_);
  if (!status.ok()) return status;
  TACHO_CHECK(column * rows->size() + first_row_[input] + count <= rows->values.size());
  std::copy(values_.begin(), values_.end(),
            rows->values.begin() + column * rows->size() + first_row_[input]);
  return absl::OkStatus();
}

absl::StatusOr<FramePosition> Inputs::ReadColumn(size_t column, FrameRows* rows,
                                                 rocksdb::WriteBatch* write) {
  const std::string prefix = ValueColumnKey::SeriesPrefix(*layout_.series[column]);
  const std::string end = PrefixEnd(prefix);
  const rocksdb::Slice end_slice(end);
  rocksdb::ReadOptions read;
  read.snapshot = snapshot_;
  read.iterate_upper_bound = &end_slice;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(read, family_));
  for (it->Seek(prefix); it->Valid(); it->Next()) {
    const auto key = ValueColumnKey::Decode(View(it->key()));
    if (!key) return absl::DataLossError("a column key is damaged: " + it->key().ToString(true));
    if (key->first_time_ns > last_time_) break;
    if (key->position < set_.front().position || key->position > set_.back().position) continue;
    TACHO_ASSIGN_OR_RETURN(const auto header,
                           DecodeValueColumnHeader(key->first_time_ns, View(it->value())));
    const auto input = std::find_if(set_.begin(), set_.end(), [&](const FrameRef& frame) {
      return frame.position == key->position && frame.first_time_ns == key->first_time_ns;
    });
    if (input == set_.end() || header.layout != layout_.id) {
      if (header.last_time_ns >= first_time_) return key->position;
      continue;
    }
    const auto index = static_cast<size_t>(input - set_.begin());
    if (header.rows != first_row_[index + 1] - first_row_[index]) {
      return absl::DataLossError(absl::StrCat("a column of series ", key->series, " has ",
                                              header.rows, " rows, its frame has not"));
    }
    absl::Status taken = TakeValues(index, column, header.encoded, rows);
    if (!taken.ok()) return taken;
    write->Delete(family_, it->key());
  }
  if (!it->status().ok()) return FromRocksDb(it->status(), "read columns to be merged");
  return FramePosition{0};
}

absl::StatusOr<FramePosition> Inputs::Read(FrameRows* rows, rocksdb::WriteBatch* write) {
  TACHO_RETURN_IF_ERROR(ReadTimes(rows, write));
  rows->values.assign(rows->size() * layout_.series.size(), StaleMarker());
  for (size_t column = 0; column < layout_.series.size(); ++column) {
    auto conflict = ReadColumn(column, rows, write);
    if (!conflict.ok() || *conflict != 0) return conflict;
  }
  return FramePosition{0};
}

}  // namespace

FrameMerger::FrameMerger(const Database* database, ColumnCache* columns, SeriesIndex* index,
                         const Head* head, Options options)
    : database_(database),
      columns_(columns),
      index_(index),
      head_(head),
      options_(std::move(options)) {}

FrameMerger::~FrameMerger() { Stop(); }

void FrameMerger::Start() {
  TACHO_CHECK(!thread_.joinable());
  thread_ = std::thread(&FrameMerger::Run, this);
}

void FrameMerger::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void FrameMerger::Add(const std::vector<FrameRef>& frames) {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  for (const FrameRef& frame : frames) news_.emplace_back(frame, now);
}

bool FrameMerger::Rest(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return !AwaitFor(&mutex_, absl::Condition(&stopping_), time);
}

void FrameMerger::Run() {
  pthread_setname_np(pthread_self(), "merger");
  do {
    for (;;) {
      const absl::Time begin = MonotonicNow();
      TakeNews();
      auto worked = ScanSome();
      if (worked.ok() && !*worked) worked = MergeOne();
      if (!worked.ok() && options_.log != nullptr) {
        options_.log(absl::StrCat("frames stay unmerged: ", worked.status().ToString()));
      }
      const bool disk_refuses = absl::IsUnavailable(worked.status());
      if (disk_refuses || (worked.ok() && !*worked)) break;
      if (!Rest(kRest * (MonotonicNow() - begin))) return;
    }
  } while (Rest(kMergeRound));
}

absl::Status FrameMerger::MergeDue() {
  for (;;) {
    TakeNews();
    auto worked = ScanSome();
    if (worked.ok() && !*worked) worked = MergeOne();
    if (!worked.ok()) return worked.status();
    if (!*worked) return absl::OkStatus();
  }
}

uint32_t FrameMerger::TargetRows(const FrameRef& frame) const {
  const auto columns = index_->CountColumns(frame.job, frame.layout);
  if (!columns.ok() || *columns == 0) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(options_.seal_rows, kValuesPerMerge / *columns));
}

void FrameMerger::TakeNews() {
  std::vector<std::pair<FrameRef, absl::Time>> news;
  {
    absl::MutexLock lock(&mutex_);
    news.swap(news_);
  }
  if (!std::exchange(started_, true)) {
    const auto days = database_->partitions->Between(INT64_MIN, INT64_MAX);
    for (size_t i = days.size() > 2 ? days.size() - 2 : 0; i < days.size(); ++i) {
      if (known_days_.insert(days[i]->day()).second) to_scan_.insert(days[i]->day());
    }
  }
  for (const auto& [frame, sealed] : news) {
    candidates_.Add(frame, TargetRows(frame), sealed);
    if (known_days_.insert(frame.day).second) to_scan_.insert(frame.day);
  }
}

absl::StatusOr<bool> FrameMerger::ScanSome() {
  if (to_scan_.empty()) return false;
  const int64_t day = *to_scan_.begin();
  const auto partitions = database_->partitions->Between(day, day);
  std::string next;
  absl::Status damage;
  if (!partitions.empty()) {
    rocksdb::ReadOptions read;
    read.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> it(
        database_->db->NewIterator(read, partitions.front()->handle()));
    const absl::Time now = options_.now();
    size_t keys = 0;
    for (it->Seek(scan_from_.empty() ? "T" : scan_from_); it->Valid() && it->key().starts_with("T");
         it->Next()) {
      if (++keys > kKeysPerScan) {
        next = it->key().ToString();
        break;
      }
      ByteReader key(View(it->key()).substr(1));
      FrameRef frame{.day = day};
      frame.job = key.Be32();
      frame.layout = key.Be64();
      frame.first_time_ns = key.BeTime();
      frame.position = key.Be64();
      const auto rows = DecodeTimeColumnRows(View(it->value()));
      if (!key.AtEnd() || !rows.ok()) {
        damage = absl::DataLossError("the time column " + it->key().ToString(true) + " is damaged");
        continue;  // Readers report it; the others can be merged.
      }
      frame.rows = *rows;
      candidates_.Add(frame, TargetRows(frame), now);
    }
    if (damage.ok()) damage = FromRocksDb(it->status(), "look through a day");
  }
  scan_from_ = next;
  if (scan_from_.empty()) to_scan_.erase(day);
  if (!damage.ok()) return damage;
  return true;
}

absl::StatusOr<bool> FrameMerger::MergeOne() {
  const absl::Time now = options_.now();
  const auto set = candidates_.TakeDue(head_->SealedUpTo(), options_.quiet, now);
  if (set.empty()) {
    for (const int64_t day : candidates_.ForgetDoneDays(options_.quiet, now)) {
      known_days_.erase(day);
    }
    return false;
  }
  const auto layout = index_->FindLayout(set.front().job, set.front().layout);
  if (!layout.ok()) {
    candidates_.Forget(set.front().day, set.front().layout);
    if (absl::IsNotFound(layout.status())) return true;  // The job has expired.
    return layout.status();
  }
  Reach(options_.at_point, crash_point::kMergeBegin);
  const auto outcome = Merge(**layout, set);
  if (!outcome.ok()) {
    // A disk that refuses may have room later; damage stays.
    if (!absl::IsUnavailable(outcome.status())) {
      candidates_.Forget(set.front().day, set.front().layout);
    }
    return outcome.status();
  }
  if (outcome->merged.rows > 0) {
    candidates_.Replace(set, outcome->merged);
  } else if (outcome->conflict != 0) {
    candidates_.Separate(set, outcome->conflict);
  } else {
    candidates_.Forget(set.front().day, set.front().layout);
  }
  return true;
}

absl::StatusOr<FrameMerger::Outcome> FrameMerger::Merge(const Layout& layout,
                                                        const MergeCandidates::Set& set) {
  TACHO_CHECK(!set.empty() && set.front().position <= set.back().position);
  const auto partitions = database_->partitions->Between(set.front().day, set.front().day);
  if (partitions.empty()) return Outcome{};  // Retention was faster.
  if (options_.is_whole != nullptr && !options_.is_whole(set.front().day)) return Outcome{};
  const Partition& partition = *partitions.front();
  FrameRows rows;
  rocksdb::WriteBatch write;
  const auto conflict =
      Inputs(database_->db.get(), partition.handle(), layout, set).Read(&rows, &write);
  if (!conflict.ok()) return conflict.status();
  if (*conflict != 0) return Outcome{.conflict = *conflict};
  uint64_t bytes = 0;
  // Behind the deletions: one of the keys may be that of an input.
  const auto frames =
      EncodeFrames(layout, rows, set.back().position,
                   [&](int64_t, absl::string_view key, absl::string_view value) {
                     write.Put(partition.handle(), rocksdb::Slice(key.data(), key.size()),
                               rocksdb::Slice(value.data(), value.size()));
                     bytes += key.size() + value.size();
                   });
  TACHO_CHECK(frames.size() == 1);  // ReadTimes() has seen that all inputs are of one day.
  Reach(options_.at_point, crash_point::kMergeEncoded);
  ColumnWrite columns_change(columns_, ColumnWrite::Kind::kReplaces);
  columns_change.AddSourceOf(layout);
  // Not synced: it is lost with all that was merged, or with nothing.
  TACHO_RETURN_IF_ERROR(database_->WriteUnsynced(&write, "write merged columns"));
  Reach(options_.at_point, crash_point::kMergeWritten);
  partition.SetMergedInto();
  ++merges_;
  frames_merged_ += set.size();
  bytes_merged_ += bytes;
  return Outcome{.merged = frames.front()};
}

void FrameMerger::FillStats(StoreStats* stats) const {
  stats->merges = merges_;
  stats->frames_merged = frames_merged_;
  stats->merge_bytes = bytes_merged_;
}

}  // namespace tacho::storage

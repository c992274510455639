// Entries are kept in the order of their last use. Counters of writes decide whether an entry still
// shows what the disk has; the disk is never asked.
#include "storage/columns/column_cache.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/hash/hash.h"
#include "proto/base/check.h"

namespace tacho::storage {
namespace {

// Memory of an entry, its place in the list and in the map, and what allocation adds.
constexpr uint64_t kEntryBytes = 320;

uint64_t BytesOf(const DecodedColumn& column) {
  return sizeof(DecodedColumn) + 64 + column.values.capacity() * sizeof(double);
}

uint64_t BytesOf(const FrameTimes& times) {
  return sizeof(FrameTimes) + 64 +
         (times.column.times.capacity() + times.column.steps.capacity()) * sizeof(int64_t) +
         times.step_ends.capacity() * sizeof(uint32_t);
}

bool SameKey(const ColumnInfo& a, const ColumnInfo& b) {
  return a.first_time_ns == b.first_time_ns && a.position == b.position;
}

bool KeyBefore(const ColumnInfo& a, const ColumnInfo& b) {
  return a.first_time_ns != b.first_time_ns ? a.first_time_ns < b.first_time_ns
                                            : a.position < b.position;
}

void DescribeSteps(FrameTimes* times) {
  const std::vector<int64_t>& steps = times->column.steps;
  size_t repeats = 0;
  for (size_t i = 1; i < steps.size(); ++i) repeats += steps[i] == steps[i - 1] ? 1 : 0;
  if (std::is_sorted(steps.begin(), steps.end())) {
    times->step_order = repeats > 0 ? StepOrder::kNeverFall : StepOrder::kRise;
  }
  if (times->step_order == StepOrder::kNeverFall) {
    times->step_ends.reserve(steps.size() - repeats);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i + 1 == steps.size() || steps[i] != steps[i + 1]) {
        times->step_ends.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  for (const int64_t step : steps) {
    times->lowest_step = std::min(times->lowest_step, step);
    times->highest_step = std::max(times->highest_step, step);
  }
}

}  // namespace

ColumnCache::ColumnCache(uint64_t max_bytes)
    : max_bytes_(max_bytes), times_bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

size_t ColumnCache::SourceOf(JobId job, const SeriesSource& source) {
  return absl::HashOf(job, source.task, source.host) % kSources;
}

ColumnCache::Entry* ColumnCache::Touch(const Key& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  // An entry of the newest quarter stays where it is: moving costs more than finding.
  if (moves_ - found->second->moved >= entries_.size() / 4) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->moved = ++moves_;
  }
  return &*found->second;
}

void ColumnCache::Insert(Entry entry) {
  bytes_ += entry.bytes;
  entry.moved = ++moves_;
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
}

void ColumnCache::Charge(Entry* entry, uint64_t bytes) {
  TACHO_CHECK(bytes_ >= entry->bytes);
  bytes_ += bytes - entry->bytes;
  entry->bytes = bytes;
}

void ColumnCache::MakeRoom() {
  while (!entries_.empty() && bytes_ + *times_bytes_ > max_bytes_) {
    TACHO_CHECK(bytes_ >= entries_.back().bytes);
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

SeriesColumnsPtr ColumnCache::Find(int64_t day, SeriesId series, const Count& count) {
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Touch({day, series, 0, 0, false});
  if (entry == nullptr || entry->count != count) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  return entry->columns;
}

void ColumnCache::Put(int64_t day, SeriesId series, const Count& count,
                      const SeriesColumnsPtr& columns) {
  TACHO_CHECK(columns != nullptr);
  const std::vector<ColumnInfo>& infos = columns->columns_;
  uint64_t bytes = kEntryBytes + sizeof(SeriesColumns) +
                   infos.capacity() * (sizeof(ColumnInfo) + sizeof(DecodedColumnPtr));
  if (bytes > max_bytes_ / 8) return;
  absl::MutexLock lock(&mutex_);
  const Key key = {day, series, 0, 0, false};
  Entry* const entry = Touch(key);
  if (entry == nullptr) {
    Insert({.key = key, .count = count, .columns = columns, .bytes = bytes});
    return MakeRoom();
  }
  if (entry->count.writes >= count.writes) return;  // It is from a later moment, or another put it.
  if (entry->count.rewrites == count.rewrites) {
    const std::vector<ColumnInfo>& old = entry->columns->columns_;
    absl::MutexLock old_lock(&entry->columns->mutex_);
    absl::MutexLock new_lock(&columns->mutex_);
    for (size_t i = 0; i < old.size(); ++i) {
      if (entry->columns->decoded_[i] == nullptr) continue;
      const auto found = std::lower_bound(infos.begin(), infos.end(), old[i], KeyBefore);
      if (found == infos.end() || !SameKey(*found, old[i])) continue;
      bytes += BytesOf(*entry->columns->decoded_[i]);
      columns->decoded_[static_cast<size_t>(found - infos.begin())] = entry->columns->decoded_[i];
    }
  }
  entry->columns = columns;
  entry->count = count;
  Charge(entry, bytes);
  MakeRoom();
}

void ColumnCache::PutDecoded(int64_t day, SeriesId series, const SeriesColumnsPtr& columns,
                             size_t column, DecodedColumnPtr decoded) {
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Touch({day, series, 0, 0, false});
  if (entry == nullptr || entry->columns != columns) return;
  {
    absl::MutexLock columns_lock(&columns->mutex_);
    TACHO_CHECK(decoded != nullptr && column < columns->decoded_.size());
    if (columns->decoded_[column] != nullptr) return;
    const uint64_t bytes = entry->bytes + BytesOf(*decoded);
    columns->decoded_[column] = std::move(decoded);
    Charge(entry, bytes);
  }
  MakeRoom();
}

std::optional<ColumnCache::Times> ColumnCache::FindTimes(int64_t day, LayoutId layout,
                                                         int64_t first_time_ns,
                                                         FramePosition position,
                                                         const Count& count) {
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Touch({day, layout, first_time_ns, position, true});
  if (entry == nullptr || entry->count.rewrites != count.rewrites) {
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  return entry->times;
}

void ColumnCache::PutTimes(int64_t day, LayoutId layout, int64_t first_time_ns,
                           FramePosition position, const Count& count, const Times& times) {
  if (max_bytes_ == 0) return;
  absl::MutexLock lock(&mutex_);
  const Key key = {day, layout, first_time_ns, position, true};
  Entry* const entry = Touch(key);
  if (entry == nullptr) {
    Insert({.key = key, .count = count, .times = times, .bytes = kEntryBytes});
  } else if (entry->count.rewrites < count.rewrites ||
             (entry->count.rewrites == count.rewrites && entry->times.times == nullptr)) {
    entry->times = times;
    entry->count = count;
  }
  MakeRoom();
}

FrameTimesPtr ColumnCache::MakeTimes(TimeColumn column) {
  TACHO_CHECK(!column.times.empty() && column.times.size() == column.steps.size());
  auto* const times = new FrameTimes{std::move(column)};
  const std::vector<int64_t>& each = times->column.times;
  times->ascend =
      std::adjacent_find(each.begin(), each.end(), std::greater_equal<>()) == each.end();
  DescribeSteps(times);
  const uint64_t bytes = BytesOf(*times);
  *times_bytes_ += bytes;
  return {times, [bytes, total = times_bytes_](const FrameTimes* gone) {
            *total -= bytes;
            delete gone;
          }};
}

bool ColumnCache::IsHalfEmpty() const {
  absl::MutexLock lock(&mutex_);
  return bytes_ + *times_bytes_ <= max_bytes_ / 2;
}

void ColumnCache::Clear() {
  absl::MutexLock lock(&mutex_);
  entries_.clear();
  by_key_.clear();
  bytes_ = 0;
}

void ColumnCache::FillStats(StoreStats* stats) const {
  stats->column_cache_hits = hits_;
  stats->column_cache_misses = misses_;
  absl::MutexLock lock(&mutex_);
  stats->column_cache_bytes = bytes_ + *times_bytes_;
}

ColumnWrite::~ColumnWrite() {
  for (const size_t source : sources_) ++cache_->counters_[source].ended;
}

void ColumnWrite::Add(size_t source) {
  sources_.push_back(source);
  ++cache_->counters_[source].begun;
  if (kind_ == Kind::kReplaces) ++cache_->counters_[source].rewrites;
}

void ColumnWrite::AddSourceOf(const Layout& layout) {
  Add(ColumnCache::SourceOf(*layout.series.front()));
}

void ColumnWrite::AddEverySource() {
  for (size_t source = 0; source < ColumnCache::kSources; ++source) Add(source);
}

ColumnMoment::ColumnMoment(const ColumnCache& cache) {
  for (size_t i = 0; i < writes_.size(); ++i) writes_[i] = cache.counters_[i].ended;
}

void ColumnMoment::End(const ColumnCache& cache) {
  for (size_t i = 0; i < rewrites_.size(); ++i) rewrites_[i] = cache.counters_[i].rewrites;
  for (size_t i = 0; i < writes_.size(); ++i) {
    // Whatever had begun by now had ended before the snapshot: it holds just these.
    if (cache.counters_[i].begun != writes_[i]) in_doubt_.push_back(i);
  }
}

std::optional<ColumnCache::Count> ColumnMoment::Of(const Series& series) const {
  const size_t source = ColumnCache::SourceOf(series);
  if (std::binary_search(in_doubt_.begin(), in_doubt_.end(), source)) return std::nullopt;
  return ColumnCache::Count{writes_[source], rewrites_[source]};
}

}  // namespace tacho::storage

// What readers have looked up and decoded of sealed columns, kept for the next reader: which
// columns a series has in a day, their values and times. Bounded in bytes; what was used least
// recently leaves first.
//
// A reader must see its snapshot and nothing else, while sealing adds columns and merging replaces
// some. So a writer of columns announces it (ColumnWrite), and a view notes how many writes its
// snapshot holds (ColumnMoment). Both is counted by source, in one of kSources counters: what was
// remembered serves a view whose count is the same. A view that was made during a write of a source
// remembers nothing of it and takes nothing that was remembered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"
#include "storage/model/series.h"
#include "storage/model/series_reader.h"
#include "storage/model/stats.h"

namespace tacho::storage {

// A value column without its values.
struct ColumnInfo {
  int64_t first_time_ns = 0;
  FramePosition position = 0;
  LayoutId layout = 0;
  int64_t last_time_ns = 0;
  uint32_t rows = 0;
  ColumnStats stats;
};

// The rows of a frame: a time column and what is to be known of it.
struct FrameTimes {
  TimeColumn column;
  bool ascend = false;  // Strictly: no time comes twice.
  // kNoStep counts as a step.
  int64_t lowest_step = INT64_MAX;
  int64_t highest_step = INT64_MIN;
  StepOrder step_order = StepOrder::kAny;
  std::vector<uint32_t> step_ends;  // Only for kNeverFall: the last row of each step.
};
using FrameTimesPtr = std::shared_ptr<const FrameTimes>;

struct DecodedColumn {
  FrameTimesPtr times;
  std::vector<double> values;  // One a row.
  bool whole = false;          // Every row has a value.
};
using DecodedColumnPtr = std::shared_ptr<const DecodedColumn>;

// The columns of a series in a day, as of one count of writes. Thread-safe.
class SeriesColumns {
 public:
  explicit SeriesColumns(std::vector<ColumnInfo> columns)
      : columns_(std::move(columns)), decoded_(columns_.size()) {}

  const std::vector<ColumnInfo>& columns() const { return columns_; }  // Ascending by key.
  // Null: not known.
  DecodedColumnPtr Decoded(size_t column) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return decoded_[column];
  }

 private:
  friend class ColumnCache;

  const std::vector<ColumnInfo> columns_;
  mutable absl::Mutex mutex_;
  std::vector<DecodedColumnPtr> decoded_ ABSL_GUARDED_BY(mutex_);
};
using SeriesColumnsPtr = std::shared_ptr<SeriesColumns>;

// Thread-safe.
class ColumnCache {
 public:
  static constexpr size_t kSources = 512;

  // Nothing is remembered if `max_bytes` is 0. Columns in use may take some bytes more.
  explicit ColumnCache(uint64_t max_bytes);
  ColumnCache(const ColumnCache&) = delete;
  ColumnCache& operator=(const ColumnCache&) = delete;

  // The counter of a source: the same for all series of a layout, in memory or brought back.
  static size_t SourceOf(JobId job, const SeriesSource& source);
  static size_t SourceOf(const Series& series) { return SourceOf(series.job_id, *series.source); }

  // Writes of a source: of these, so many changed what is under a key.
  struct Count {
    uint32_t writes = 0;
    uint32_t rewrites = 0;

    friend bool operator==(const Count&, const Count&) = default;
  };

  // The columns of a series in a day; null if they are not known for this count.
  SeriesColumnsPtr Find(int64_t day, SeriesId series, const Count& count)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers them. Values that are known of the same columns go over into `columns`, which nobody
  // else may use yet.
  void Put(int64_t day, SeriesId series, const Count& count, const SeriesColumnsPtr& columns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Remembers the values of one of `columns`, unless those have left.
  void PutDecoded(int64_t day, SeriesId series, const SeriesColumnsPtr& columns, size_t column,
                  DecodedColumnPtr decoded) ABSL_LOCKS_EXCLUDED(mutex_);

  // A time column, and what it says without being decoded.
  struct Times {
    TimeColumnEnds ends = {};
    FrameTimesPtr times = nullptr;
  };
  std::optional<Times> FindTimes(int64_t day, LayoutId layout, int64_t first_time_ns,
                                 FramePosition position, const Count& count)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void PutTimes(int64_t day, LayoutId layout, int64_t first_time_ns, FramePosition position,
                const Count& count, const Times& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it is remembered or not, its bytes count for as long as anybody has it.
  FrameTimesPtr MakeTimes(TimeColumn column);

  bool IsHalfEmpty() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets everything.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

  void FillStats(StoreStats* stats) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ColumnWrite;
  friend class ColumnMoment;

  // Series, or layout with the time and position of one frame.
  using Key = std::tuple<int64_t, uint64_t, int64_t, FramePosition, bool>;
  struct Entry {
    Key key = {};
    Count count = {};
    SeriesColumnsPtr columns = nullptr;  // For a series,
    Times times = {};                    // for a frame.
    uint64_t bytes = 0;
    uint64_t moved = 0;  // moves_ when it came to the front.
  };
  using Entries = std::list<Entry>;
  struct Counters {
    std::atomic<uint32_t> begun = 0;
    std::atomic<uint32_t> ended = 0;
    std::atomic<uint32_t> rewrites = 0;
  };

  // The entry under a key, which counts as used; null if there is none.
  Entry* Touch(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(Entry* entry, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until the bound is kept.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t max_bytes_;
  std::array<Counters, kSources> counters_;
  // Bytes of the time columns alive. They are shared, and may outlive the cache.
  const std::shared_ptr<std::atomic<uint64_t>> times_bytes_;
  std::atomic<uint64_t> hits_ = 0;
  std::atomic<uint64_t> misses_ = 0;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // The last used in front.
  uint64_t moves_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, Entries::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Without time columns.
};

// For as long as columns of some sources are being written. One thread.
class ColumnWrite {
 public:
  enum class Kind {
    kAdds,      // Under keys that were not there.
    kReplaces,  // Anything.
  };
  // `cache` is not owned.
  ColumnWrite(ColumnCache* cache, Kind kind) : cache_(cache), kind_(kind) {}
  ~ColumnWrite();
  ColumnWrite(const ColumnWrite&) = delete;
  ColumnWrite& operator=(const ColumnWrite&) = delete;

  // Before anything of it is written.
  void AddSourceOf(const Layout& layout);
  void AddEverySource();

 private:
  void Add(size_t source);

  ColumnCache* const cache_;
  const Kind kind_;
  std::vector<size_t> sources_;
};

// Which writes a snapshot holds. One thread.
class ColumnMoment {
 public:
  // Make it before the snapshot is taken and before the partitions are listed.
  explicit ColumnMoment(const ColumnCache& cache);
  // Call it after that.
  void End(const ColumnCache& cache);

  // nullopt: a write was on its way, nothing is to be remembered or taken from memory.
  std::optional<ColumnCache::Count> Of(const Series& series) const;

 private:
  std::array<uint32_t, ColumnCache::kSources> writes_;
  std::array<uint32_t, ColumnCache::kSources> rewrites_;
  std::vector<size_t> in_doubt_;  // Few, ascending.
};

}  // namespace tacho::storage

// Rows that are durable in the journal but not yet sealed, in memory, and the newest row of every
// layout.
//
// Life of an open row: Append() copies it behind the rows of its layout; TakeForSealing() hands the
// rows over while they stay readable; FinishSealing() forgets them once their columns are written.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/frame.h"
#include "storage/rows_entry.h"
#include "storage/series.h"
#include "storage/series_reader.h"
#include "storage/store.h"

namespace tacho::storage {

// Thread-safe; Append() is for one thread at a time. Lock order: mutex_ before an OpenFrame's.
class Head {
 public:
  // Copies the rows of an entry. `position` is the entry's in the journal, higher than any before.
  void Append(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Rows of one layout on their way into columns.
  struct Sealing {
    LayoutPtr layout;
    std::shared_ptr<const FrameRows> rows;
    FramePosition position = 0;  // Of the last row.
  };
  // Takes the open rows of every layout that has `min_rows` of them or whose oldest came before
  // `opened_before`, at most `max_values` values in all (but at least one layout's).
  std::vector<Sealing> TakeForSealing(size_t min_rows, absl::Time opened_before, size_t max_values)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishSealing(const std::vector<Sealing>& sealed) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts rows back that could not be written.
  void ReturnFromSealing(const std::vector<Sealing>& refused) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything in the journal before this position is sealed.
  uint64_t SealedUpTo() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Open rows of one series, in the order in which they came: one piece a layout and sealing state.
  struct Piece {
    FramePosition position = 0;
    SampleBlock samples;  // Stale markers included.
  };
  std::vector<Piece> CopySeries(const Series& series, int64_t begin_ns, int64_t end_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets the layouts of a job; their open rows with them.
  void RemoveJob(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t open_rows() const { return open_rows_; }
  uint64_t open_values() const { return open_values_; }
  // A layout has reached this many rows since the last TakeForSealing(): worth a look.
  size_t longest() const { return longest_; }

 private:
  struct OpenFrame {
    explicit OpenFrame(LayoutPtr of) : layout(std::move(of)) {}

    const LayoutPtr layout;
    mutable absl::Mutex mutex;
    FrameRows rows ABSL_GUARDED_BY(mutex);
    uint64_t first_position ABSL_GUARDED_BY(mutex) = 0;
    uint64_t last_position ABSL_GUARDED_BY(mutex) = 0;
    absl::Time opened ABSL_GUARDED_BY(mutex);

    std::shared_ptr<const FrameRows> sealing ABSL_GUARDED_BY(mutex);
    uint64_t sealing_first_position ABSL_GUARDED_BY(mutex) = 0;
    uint64_t sealing_last_position ABSL_GUARDED_BY(mutex) = 0;

    int64_t latest_time ABSL_GUARDED_BY(mutex) = INT64_MIN;
    int64_t latest_step ABSL_GUARDED_BY(mutex) = kNoStep;
    absl::Time received ABSL_GUARDED_BY(mutex);
    std::vector<double> latest_values ABSL_GUARDED_BY(mutex);
    std::vector<int64_t> latest_times ABSL_GUARDED_BY(mutex);
    std::vector<absl::Time> latest_received ABSL_GUARDED_BY(mutex);

    // Brings the latest_* members up to date with the rows of an entry.
    void TakeLatest(const RowsEntry& entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  };
  OpenFrame* FindOrAdd(const LayoutPtr& layout) ABSL_LOCKS_EXCLUDED(mutex_);
  static void CopyColumn(const OpenFrame& frame, const FrameRows& rows, size_t column,
                         int64_t begin_ns, int64_t end_ns, SampleBlock* out);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<LayoutId, std::shared_ptr<OpenFrame>> frames_ ABSL_GUARDED_BY(mutex_);
  // The layouts of each source. Its frames keep the source alive.
  absl::flat_hash_map<const SeriesSource*, std::vector<std::shared_ptr<OpenFrame>>> sources_
      ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> applied_position_ = 0;  // Every entry up to this one is in a frame.
  std::atomic<uint64_t> open_rows_ = 0;
  std::atomic<uint64_t> open_values_ = 0;
  std::atomic<size_t> longest_ = 0;
};

}  // namespace tacho::storage

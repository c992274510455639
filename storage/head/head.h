// Rows that are durable in the journal but not yet sealed, in memory, and the newest row of every
// layout. See open_frame.h for the life of an open row.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/head/captured_rows.h"
#include "storage/head/open_frame.h"
#include "storage/head/row_block.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/series.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

// Thread-safe; Append(), RemoveSealed() and RemoveJob() are for one thread at a time. No frame's
// lock is taken while mutex_ is held, and mutex_ is held for look-ups and copies of pointers only.
class Head {
 public:
  // Copies the rows of an entry. `position` is the entry's in the journal, higher than any before.
  void Append(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for an entry that is older than others in the head, but newer than all of its layout.
  void AppendLate(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position,
                  absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Compresses the open rows of one layout after the other, the ones with the most raw bytes first,
  // until all open rows take no more than `bytes` or the raw ones no more than `raw_bytes`.
  void Compress(uint64_t bytes, uint64_t raw_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Rows of one layout on their way into columns.
  struct Sealing {
    std::shared_ptr<OpenFrame> frame;
    OpenFrame::Taken taken;
  };
  // Which layouts are to be sealed: all for which one of these holds.
  struct SealingNeed {
    size_t min_rows = SIZE_MAX;                        // So many open rows,
    absl::Time opened_before = absl::InfinitePast();   // or the oldest came before this,
    absl::Time opened_after = absl::InfiniteFuture();  // or the clock was set back since,
    uint64_t positions_before = 0;                     // or it has one of these positions.
    // A layout that was never sealed counts as older by up to this: layouts that all began in one
    // moment, as a fleet does, are not due in one moment.
    absl::Duration spread;
    // Besides those the layouts of the most bytes, among those of at least `excess_min_rows`, until
    // this much memory is on its way out.
    uint64_t excess_bytes = 0;
    size_t excess_min_rows = 1;
  };
  // Takes open rows of about `max_values` values at most (but at least one layout's): call again
  // until there is nothing left.
  std::vector<Sealing> TakeForSealing(const SealingNeed& need, size_t max_values)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Every entry up to this one that was not appended is sealed, belongs to a job that is gone, or
  // will come through AppendLate(). For a journal that was read after a start.
  void NoteRead(uint64_t position);

  // Everything in the journal before this position is sealed, but for late entries that are not
  // here yet.
  uint64_t SealedUpTo() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The open rows of one series at this moment: one piece a layout and sealing state, ascending in
  // position.
  std::vector<HeadColumn> Capture(const Series& series) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The open rows of a whole job. Frames are captured one by one: of one moment only if nothing is
  // appended meanwhile.
  std::vector<CapturedFrame> CaptureJob(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The newest sample that rows since Open() have of a series, if that is beyond doubt: a row that
  // came late may have one that is not looked for here. nullopt: read to know.
  std::optional<LatestSample> Latest(const SeriesPtr& series) const ABSL_LOCKS_EXCLUDED(mutex_);
  void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The series have no newest value any more, in any layout, unless it is newer than their end. In
  // memory only, as the newest values are. Takes time in proportion to the columns of their
  // sources.
  void EndLatest(const std::vector<SeriesEnd>& ends) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets the layouts of the jobs that have no open rows, and returns those jobs.
  std::vector<JobId> RemoveSealed(const std::vector<JobId>& jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the layouts of a job; their open rows with them.
  void RemoveJob(JobId job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Over all layouts, including rows that are being sealed.
  const OpenTotal& total() const { return total_; }
  // A layout has reached this many rows since the last TakeForSealing(): worth a look.
  size_t longest() const { return longest_; }

 private:
  using FramePtr = std::shared_ptr<OpenFrame>;
  OpenFrame* FindOrAdd(const LayoutPtr& layout) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<FramePtr> FramesOf(const SeriesSource* source) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The frames that `wanted` says yes to.
  std::vector<FramePtr> Frames(const std::function<bool(const OpenFrame&)>& wanted) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  OpenTotal total_;  // Before the frames, which subtract themselves from it when they go.
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<LayoutId, FramePtr> frames_ ABSL_GUARDED_BY(mutex_);
  // The layouts of each source. Its frames keep the source alive.
  absl::flat_hash_map<const SeriesSource*, std::vector<FramePtr>> sources_ ABSL_GUARDED_BY(mutex_);
  // Every entry up to this one is in a frame, but for those that NoteRead() names.
  std::atomic<uint64_t> applied_position_ = 0;
  std::atomic<size_t> longest_ = 0;
};

}  // namespace tacho::storage

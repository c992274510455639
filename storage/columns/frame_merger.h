// Merges small frames of short-lived or slow sources into longer ones, in the background.
//
// It never changes what a reader returns. The merged frame has the highest position of its inputs
// and their rows in the order of their positions. A sample could therefore only come to win over
// one that was written between the inputs, in a frame that shares a series with them: so a set is
// merged only if no such frame lies in the same time range (each series' columns of the day are
// looked through), and only below the position up to which everything is sealed, where no further
// frame can appear. The new columns and the deletions of the old ones are one write: a reader's
// snapshot, and a crash, see all of it or nothing.
//
// Which frames are merged when: merge_candidates.h. That is not kept on disk;
// after a start the newest two days are looked through once, and a day before them when something
// is sealed into it. Memory is bounded by kValuesPerMerge, the share of a core by kRest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/codec/frame.h"
#include "storage/columns/column_cache.h"
#include "storage/columns/merge_candidates.h"
#include "storage/db/database.h"
#include "storage/head/head.h"
#include "storage/index/series_index.h"
#include "storage/model/stats.h"

namespace rocksdb {
class Snapshot;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe but for Start() and Stop().
class FrameMerger {
 public:
  struct Options {
    size_t seal_rows = 0;  // Rows of a whole frame.
    absl::Duration quiet;  // As StoreOptions::merge_quiet.
    std::function<absl::Time()> now;
    std::function<void(absl::string_view)> log;  // May be null.
    AtPoint at_point;                            // As StoreOptions::at_point.
    // Whether the disk has all of a day: else frames elsewhere may lie between those to be merged.
    // Null: always.
    std::function<bool(int64_t day)> is_whole;
  };
  // All not owned; they must outlive the merger.
  FrameMerger(const Database* database, ColumnCache* columns, SeriesIndex* index, const Head* head,
              Options options);
  ~FrameMerger();

  // Looks the newest two days through, then goes on with what is sealed.
  void Start();
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Frames that have been written.
  void Add(const std::vector<FrameRef>& frames) ABSL_LOCKS_EXCLUDED(mutex_);

  // Merges all that is due now, on the calling thread; the thread must not run.
  absl::Status MergeDue() ABSL_LOCKS_EXCLUDED(mutex_);

  void FillStats(StoreStats* stats) const;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Rest(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);  // False when stopping.
  void TakeNews() ABSL_LOCKS_EXCLUDED(mutex_);
  // Each does one bounded piece of work; false if there is none.
  absl::StatusOr<bool> ScanSome();
  absl::StatusOr<bool> MergeOne();

  // Rows that a frame of this layout should have; 0 if it is no longer known.
  uint32_t TargetRows(const FrameRef& frame) const;
  // What merging a set came to.
  struct Outcome {
    FrameRef merged;             // Rows 0: it was not merged,
    FramePosition conflict = 0;  // because of a frame with this position.
  };
  absl::StatusOr<Outcome> Merge(const Layout& layout, const MergeCandidates::Set& set);

  const Database* const database_;
  ColumnCache* const columns_;
  SeriesIndex* const index_;
  const Head* const head_;
  const Options options_;

  absl::Mutex mutex_;
  std::vector<std::pair<FrameRef, absl::Time>> news_ ABSL_GUARDED_BY(mutex_);  // And when sealed.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;

  // For the thread that merges.
  MergeCandidates candidates_;
  std::set<int64_t> known_days_;  // Looked through, or about to be.
  std::set<int64_t> to_scan_;
  std::string scan_from_;  // Where the first of them is continued; empty: at its beginning.
  bool started_ = false;

  std::atomic<uint64_t> frames_merged_ = 0;
  std::atomic<uint64_t> merges_ = 0;
  std::atomic<uint64_t> bytes_merged_ = 0;
};

}  // namespace tacho::storage

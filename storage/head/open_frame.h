// The open rows of one layout: durable in the journal, not yet sealed.
//
// Life of a row: Append() copies it behind the others, into the tail; Compress() makes a block of
// the tail and compresses it, should memory be short; TakeForSealing() hands all rows over while
// they stay readable; FinishSealing() forgets them once their columns are written.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/codec/frame.h"
#include "storage/head/latest_values.h"
#include "storage/head/row_block.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/series.h"

namespace tacho::storage {

// The weight of open rows, including rows that are being sealed.
struct OpenWeight {
  uint64_t rows = 0;
  uint64_t raw_bytes = 0;
  uint64_t compressed_bytes = 0;

  OpenWeight& operator+=(const OpenWeight& other);
  OpenWeight& operator-=(const OpenWeight& other);
};

// The sum over all frames. Thread-safe; the parts need not be of the same moment.
class OpenTotal {
 public:
  void Add(const OpenWeight& weight);
  void Subtract(const OpenWeight& weight);

  uint64_t rows() const { return rows_; }
  uint64_t raw_bytes() const { return raw_bytes_; }
  uint64_t bytes() const { return raw_bytes_ + compressed_bytes_; }

 private:
  std::atomic<uint64_t> rows_ = 0;
  std::atomic<uint64_t> raw_bytes_ = 0;
  std::atomic<uint64_t> compressed_bytes_ = 0;
};

// Thread-safe. Its lock is held for copying rows, never for encoding or writing them.
class OpenFrame {
 public:
  // `total` is not owned and must outlive the frame.
  OpenFrame(LayoutPtr layout, OpenTotal* total);
  ~OpenFrame();

  const LayoutPtr& layout() const { return layout_; }

  // Copies the rows of an entry; returns how many are open now, not being sealed. `position` is the
  // entry's in the journal, higher than any before.
  size_t Append(const RowsEntry& entry, uint64_t position, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Compresses what is raw. Rows may be appended, read and taken for sealing meanwhile.
  void Compress() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Taken {
    std::vector<RowBlockPtr> blocks;
    FramePosition position = 0;  // Position of the last row.
    size_t rows = 0;

    FrameRows Decode(const Layout& layout) const;
  };
  // All open rows; nullopt if there are none or some are being sealed.
  std::optional<Taken> TakeForSealing() ABSL_LOCKS_EXCLUDED(mutex_);
  // What was taken is written, or could not be: then it is open again.
  void FinishSealing() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnFromSealing() ABSL_LOCKS_EXCLUDED(mutex_);

  // The column that holds a series.
  std::optional<uint32_t> ColumnOf(SeriesId series) const;
  // Adds what is held of a column: one piece for what is being sealed and one for what came later.
  void Capture(uint32_t column, std::vector<HeadColumn>* out) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The rows of all columns at one moment, for AddColumn(). Costs a copy of the raw tail.
  struct AllRows {
    struct Piece {
      std::vector<RowBlockPtr> blocks;
      FramePosition position = 0;  // Position of the last row.
    };
    Piece sealing;  // Empty: none are being sealed.
    Piece open;
  };
  AllRows CaptureAll() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Does what Capture() does, with rows that were captured before.
  void AddColumn(const AllRows& rows, uint32_t column, std::vector<HeadColumn>* out) const;

  LatestValues::Newest NewestRow(uint32_t column) const ABSL_LOCKS_EXCLUDED(mutex_);
  void VisitLatest(const std::function<void(const LatestRow&)>& visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the columns of these series, by id: LatestValues::End().
  void EndLatest(const absl::flat_hash_map<SeriesId, int64_t>& times_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // How things stood a moment ago, without the lock: for choosing among many frames.
  size_t rows() const { return rows_; }  // Not being sealed, like the three below.
  uint64_t raw_bytes() const { return raw_bytes_; }
  uint64_t bytes() const { return bytes_; }
  // When the oldest row came. Meaningless without rows.
  absl::Time opened() const { return absl::FromUnixNanos(opened_ns_); }
  bool was_sealed() const { return was_sealed_; }
  // Position of the oldest row, or of the oldest that is being sealed; UINT64_MAX without rows.
  uint64_t oldest_position() const { return oldest_position_; }

 private:
  // Makes a block of the tail. The next tail makes room for `expected` rows at once.
  void FreezeTail(size_t expected) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  HeadColumn CaptureBlocks(const std::vector<RowBlockPtr>& blocks, uint32_t column) const;
  void CaptureTail(HeadColumn* piece) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Brings what is said without the lock up to date.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LayoutPtr layout_;
  OpenTotal* const total_;
  bool ids_ascend_ = true;

  mutable absl::Mutex mutex_;
  std::vector<RowBlockPtr> blocks_ ABSL_GUARDED_BY(mutex_);  // Oldest first.
  RawRows tail_ ABSL_GUARDED_BY(mutex_);                     // Came after the blocks.
  OpenWeight weight_ ABSL_GUARDED_BY(mutex_);                // Weight of blocks and tail.
  uint64_t first_position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_position_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time opened_ ABSL_GUARDED_BY(mutex_);

  std::vector<RowBlockPtr> sealing_ ABSL_GUARDED_BY(mutex_);
  OpenWeight sealing_weight_ ABSL_GUARDED_BY(mutex_);
  uint64_t sealing_first_position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sealing_last_position_ ABSL_GUARDED_BY(mutex_) = 0;

  LatestValues latest_ ABSL_GUARDED_BY(mutex_);

  std::atomic<uint32_t> rows_ = 0;
  std::atomic<bool> was_sealed_ = false;
  std::atomic<uint64_t> raw_bytes_ = 0;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<int64_t> opened_ns_ = 0;
  std::atomic<uint64_t> oldest_position_ = UINT64_MAX;
};

}  // namespace tacho::storage

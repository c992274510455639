// Ships a database's log into the bucket: reads what was written, cuts it into segments, hands them
// to the shard's log, and knows how far all of it is stored there.
//
//   RocksDB's log ─ LogTail ─▶ records ─▶ ShardLog ─ SegmentSenders ─▶ bucket
//                                             └── stored() ─▶ shipped() ─▶ acknowledgements
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/shard/segment_senders.h"
#include "storage/shard/shard_log.h"
#include "storage/shipping/log_tail.h"
#include "storage/shipping/shipped_batch.h"

namespace tacho::storage {

struct LogShipperOptions {
  rocksdb::DB* db = nullptr;  // Not owned, nor the log; both must outlive the shipper.
  ShippedFamilies families;
  ShardLog* log = nullptr;
  uint64_t after = 0;  // What was written up to this sequence is in the bucket otherwise.
  absl::Duration interval = absl::Seconds(1);  // Between two cuts. Nothing new: no segment.
  size_t segment_bytes = 4 << 20;              // A segment is cut sooner if there are so many.
  // Everything up to this sequence is in the bucket. Called with no lock held, on several threads.
  std::function<void(uint64_t sequence)> on_shipped;
  // No more will be shipped by this object. ABORTED: the owner is fenced. Others: the log cannot be
  // read; only opening the store again helps. Called once, with no lock held.
  std::function<void(const absl::Status&)> on_ended;
};

// Thread-safe but for Stop() and destruction.
class LogShipper {
 public:
  explicit LogShipper(LogShipperOptions options);
  ~LogShipper() { Stop(); }
  LogShipper(const LogShipper&) = delete;
  LogShipper& operator=(const LogShipper&) = delete;

  uint64_t shipped() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until everything up to the sequence is in the bucket. Cuts at once.
  //   DEADLINE_EXCEEDED  not within `patience`.
  //   others             as on_ended; CANCELLED after Stop().
  absl::Status AwaitShipped(uint64_t sequence, absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

  // The first segment that a replay needs if the state has every write up to `sequence`, and all
  // entries of the journal before `position` are sealed. Everything up to `sequence` is shipped.
  uint64_t FirstNeeded(uint64_t position, uint64_t sequence) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody asks about segments before this one any more, nor for what they hold.
  void Forget(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes of records in the segments that Forget() has left.
  uint64_t kept_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends no more. What is not stored then was never acknowledged.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Cut {
    uint64_t number = 0;
    uint64_t through = 0;        // With it, everything up to this sequence is stored.
    uint64_t last_position = 0;  // Of the journal's entries in it; 0: there is none.
    uint64_t bytes = 0;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Cuts what there is. True: there is more.
  absl::StatusOr<bool> Ship() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(const LogTail::Piece& piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // Hands over a segment; waits for room in the window.
  absl::Status AppendOne(const std::vector<std::string>& records, Cut cut, uint64_t last)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Everything up to here was read, and there was nothing in it to be shipped.
  void NotePassed(uint64_t through) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteStored() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteEnded(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  const LogShipperOptions options_;
  LogTail tail_;            // The shipper's thread only, as the next.
  uint64_t cut_after_ = 0;  // The last sequence of the segment before.
  uint64_t logs_deleted_ = 0;
  mutable absl::Mutex mutex_;
  uint64_t shipped_ ABSL_GUARDED_BY(mutex_);
  uint64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // Somebody waits for this sequence.
  uint64_t read_ ABSL_GUARDED_BY(mutex_);        // Everything up to it was read.
  uint64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;  // The number of the newest segment in the two.
  std::deque<Cut> unstored_ ABSL_GUARDED_BY(mutex_);
  std::deque<Cut> stored_ ABSL_GUARDED_BY(mutex_);
  uint64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of stored_.
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<SegmentSenders> senders_;
  std::thread thread_;
};

}  // namespace tacho::storage

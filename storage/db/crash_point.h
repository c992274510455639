// Named moments between two effects of the store on the disk or on memory. A test that ends the
// process at each of them, and at random ones, sees every state that a crash can leave.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"

namespace tacho::storage {

// Called at each moment below, on the thread that is there; may be null, and is in production.
using AtPoint = std::function<void(absl::string_view point)>;

inline void Reach(const AtPoint& at_point, absl::string_view point) {
  if (at_point != nullptr) at_point(point);
}

namespace crash_point {

// Opening: what is rebuilt, in this order.
inline constexpr char kOpenDatabase[] = "open.database";    // RocksDB has replayed its log.
inline constexpr char kOpenIndex[] = "open.index";          // Series and jobs are in memory.
inline constexpr char kOpenSequences[] = "open.sequences";  // Durable sequences are too.
inline constexpr char kOpenReplay[] = "open.replay";        // Before each entry of the journal.
inline constexpr char kOpenReady[] = "open.ready";          // Before the threads start.

// Registering a layout: a write that is not synced.
inline constexpr char kRegisterBegin[] = "register.begin";
inline constexpr char kRegisterEnd[] = "register.end";  // In RocksDB's log, in nobody's hands.

// A commit, on the committer's thread.
inline constexpr char kCommitStaged[] = "commit.staged";    // Nothing is written yet.
inline constexpr char kCommitWritten[] = "commit.written";  // Durable, not readable.
inline constexpr char kCommitApplied[] = "commit.applied";  // Readable, not acknowledged.

// A round of sealing, on the sealer's thread.
inline constexpr char kSealBegin[] = "seal.begin";      // Rows are taken, columns not encoded.
inline constexpr char kSealEncoded[] = "seal.encoded";  // Columns are encoded, not written.
inline constexpr char kSealWritten[] = "seal.written";  // Columns are written, rows still open too.
inline constexpr char kTrimBegin[] = "trim.begin";  // Rows are sealed, the journal has them too.
inline constexpr char kTrimDone[] = "trim.done";

// Merging two or more frames into one, on the merger's thread.
inline constexpr char kMergeBegin[] = "merge.begin";      // They are chosen.
inline constexpr char kMergeEncoded[] = "merge.encoded";  // The new one is encoded, not written.
inline constexpr char kMergeWritten[] = "merge.written";  // It has replaced them.

// After a full disk, on the committer's thread.
inline constexpr char kResumed[] = "resume.flushed";   // Memory is in tables, the torn log behind.
inline constexpr char kResumeKept[] = "resume.ready";  // What was kept is written.

// Days.
inline constexpr char kPartitionCreate[] = "partition.create";    // Before a day is made.
inline constexpr char kPartitionCreated[] = "partition.created";  // It is made, and empty.
inline constexpr char kPartitionDrop[] = "partition.drop";        // Before a day is dropped.
inline constexpr char kPartitionDropped[] = "partition.dropped";  // Other days are not yet.

// Days that move into the bucket. Only a store with a bucket gets there.
inline constexpr char kHistoryClaimed[] = "history.claimed";  // The manifest says so, we do not.
inline constexpr char kHistorySent[] = "history.sent";        // Blocks and list, no manifest.
inline constexpr char kHistoryCommitted[] = "history.committed";  // The manifest names them.
inline constexpr char kHistoryCompared[] = "history.compared";  // The bucket has what the disk has.
inline constexpr char kHistoryMarked[] = "history.marked";      // Before the day leaves the disk.

// Acknowledgements that wait for the bucket.
inline constexpr char kSharedOpened[] = "shared.opened";      // The directory's, nothing claimed.
inline constexpr char kSharedClaimed[] = "shared.claimed";    // In the bucket; nothing sealed.
inline constexpr char kSharedSealed[] = "shared.sealed";      // It is known what there is.
inline constexpr char kSharedRestored[] = "shared.restored";  // Made of the bucket, not opened.
inline constexpr char kSharedExported[] = "shared.exported";  // Files are there, unnamed.

// Closing.
inline constexpr char kCloseBegin[] = "close.begin";
inline constexpr char kCloseSealed[] = "close.sealed";    // All rows are columns.
inline constexpr char kCloseStopped[] = "close.stopped";  // The threads have ended.
inline constexpr char kCloseFlushed[] = "close.flushed";  // Memory is in tables.
inline constexpr char kCloseSettled[] = "close.settled";  // Before the database is closed.

inline constexpr const char* kAll[] = {
    kOpenDatabase,     kOpenIndex,   kOpenSequences, kOpenReplay,      kOpenReady,
    kRegisterBegin,    kRegisterEnd, kCommitStaged,  kCommitWritten,   kCommitApplied,
    kResumed,          kResumeKept,  kSealBegin,     kSealEncoded,     kSealWritten,
    kTrimBegin,        kTrimDone,    kPartitionDrop, kPartitionCreate, kPartitionCreated,
    kPartitionDropped, kCloseBegin,  kCloseSealed,   kCloseStopped,    kCloseFlushed,
    kCloseSettled,     kMergeBegin,  kMergeEncoded,  kMergeWritten};
// Besides, with SharedOptions::on.
inline constexpr const char* kAllShared[] = {kSharedOpened,   kSharedClaimed,  kSharedSealed,
                                             kSharedRestored, kSharedExported, kHistoryCommitted};

}  // namespace crash_point
}  // namespace tacho::storage

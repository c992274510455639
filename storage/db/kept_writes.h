// Writes whose effects memory has already: each is kept until the disk has it, and written before
// anything that depends on it.
#pragma once

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

namespace rocksdb {
class DB;
}

namespace tacho::storage {

class DiskWatch;

// Thread-safe.
class KeptWrites {
 public:
  // Neither is owned; both must outlive this. `disk` may be null: nobody else writes to the log.
  KeptWrites(rocksdb::DB* db, DiskWatch* disk) : db_(db), disk_(disk) {}

  // Keeps `write`, which may be empty, for the next WriteAll(), which comes before any write that
  // depends on it. Does not wait for the disk, where others queue behind synced writes. Not OK
  // if the disk refused the last time; `write` is kept nevertheless.
  rocksdb::Status Keep(rocksdb::WriteBatch write) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes what is kept, in order, unsynced. What the disk refuses stays. For a caller that has the
  // turn to write (DiskWatch::log_mutex()).
  rocksdb::Status WriteAll() ABSL_LOCKS_EXCLUDED(writing_, mutex_);

  // Both, for a caller that does not have the turn. UNAVAILABLE if the disk refuses.
  absl::Status Write(rocksdb::WriteBatch write, absl::string_view doing)
      ABSL_LOCKS_EXCLUDED(writing_, mutex_);

 private:
  bool IsEmpty() ABSL_LOCKS_EXCLUDED(mutex_);

  rocksdb::DB* const db_;
  DiskWatch* const disk_;
  absl::Mutex writing_ ABSL_ACQUIRED_BEFORE(mutex_);  // For as long as the disk is written to.
  absl::Mutex mutex_;
  std::deque<rocksdb::WriteBatch> kept_ ABSL_GUARDED_BY(mutex_);
  rocksdb::Status refused_ ABSL_GUARDED_BY(mutex_);  // The last time; OK if all was written.
};

}  // namespace tacho::storage

// Writes whose effects memory has already: what the disk refuses is kept, and written before
// anything that depends on it.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/write_batch.h"

namespace rocksdb {
class DB;
}

namespace tacho::storage {

// Thread-safe.
class KeptWrites {
 public:
  // `db` is not owned; it must outlive this.
  explicit KeptWrites(rocksdb::DB* db) : db_(db) {}

  // Writes what was kept, then `write`, unsynced. Until that succeeds all of it is kept, and every
  // call returns UNAVAILABLE, also one with nothing to write.
  absl::Status Write(rocksdb::WriteBatch write, absl::string_view doing)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  rocksdb::DB* const db_;
  absl::Mutex mutex_;
  std::vector<rocksdb::WriteBatch> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

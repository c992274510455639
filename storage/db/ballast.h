// A file that holds a part of the disk back for the moment when the rest of it is full. It is given
// up first: RocksDB then has room to write out its memory, to leave a log with half a record in it
// behind, and to drop old days. Rows are taken again when there is room for a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace rocksdb {
class Env;
class Status;
}  // namespace rocksdb

namespace tacho::storage {

// Thread-safe.
class Ballast {
 public:
  struct Options {
    std::string path;  // The store's directory. RocksDB leaves files of other names there alone.
    rocksdb::Env* env = nullptr;  // Not owned, must not be null.
    // Wanted size; at most a sixteenth of what the store has and could have of the disk. 0: none.
    // There is none either where the file system does not say how much is free.
    uint64_t bytes = 0;
    std::function<void(absl::string_view)> log;  // May be null.
  };
  // Takes over the file of an earlier process.
  explicit Ballast(Options options);

  // Bytes that it holds back now.
  uint64_t held() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Deletes the file, if there is one.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the file is there, or there is to be none. If not, makes it, provided that some room
  // would be left besides, and what was asked for last: else it would soon be given up again.
  bool Make() ABSL_LOCKS_EXCLUDED(mutex_);
  // Less is free than `needed` and a little more: the time to give it up. Always false without a
  // ballast to be made.
  bool IsRoomLow(uint64_t needed) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  uint64_t WantedBytes() const;
  uint64_t LowRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rocksdb::Status Write(uint64_t bytes) const;
  void Log(absl::string_view line) const;

  const Options options_;
  const std::string name_;
  mutable absl::Mutex mutex_;
  uint64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  // Size that it is to have; 0: not known yet, or none.
  uint64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  // The most that has been asked for in vain since the file was there.
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  // It cannot be made for another reason than a lack of room.
  bool impossible_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::storage

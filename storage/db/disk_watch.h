// Notices when RocksDB stops writing because the disk refused, and finds the way back without a
// restart where there is one.
//
// A full disk is such a case: RocksDB holds everything that was acknowledged in memory, and once
// there is room writes it into tables, after which the log with the refused write in it is no
// longer read. A failed write or sync of any other kind is not: what the kernel still holds in
// memory need not be what the disk has, so only opening the database again, which reads what is
// there and syncs it anew, shows what was stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace rocksdb {
class DB;
class Env;
class EventListener;
class Status;
}  // namespace rocksdb

namespace tacho::storage {

// Whether the disk takes what is to be stored. Reading goes on in every state.
enum class DiskState {
  kWritable,
  kRefusing,  // It is full. Everything is refused with UNAVAILABLE; the store tries by itself, and
              // goes on once there is room.
  kFailed,  // Everything is refused until the store is opened again: a write or a sync has failed,
            // and only reading the disk anew shows what it holds.
};

// Thread-safe, but TryResume() is for one thread at a time.
class DiskWatch {
 public:
  // `env` is not owned; nullptr is the real file system.
  DiskWatch(std::string path, rocksdb::Env* env);
  ~DiskWatch();

  // For DBOptions::listeners.
  std::shared_ptr<rocksdb::EventListener> listener() const;

  // What was refused; OK if nothing is amiss.
  absl::Status trouble() const;
  // Writes are refused too, not only work in the background.
  bool blocks_writes() const;
  // A write was refused with this status.
  void Note(const rocksdb::Status& status);
  // Making or dropping a column family failed. RocksDB 7.8 cannot resume after that: it ends the
  // process if it was built with assertions, as Debian's is.
  void GiveUp(const rocksdb::Status& status);
  // There is room for small changes: ask before making or dropping a column family.
  bool HasSpareRoom() const;

  enum class Outcome {
    kResumed,  // Nothing is amiss any more.
    kNotYet,   // The disk is still full.
    kNever,    // The database must be opened again.
  };
  Outcome TryResume(rocksdb::DB* db);

  // Call before a write: RocksDB can only turn its back on a log that a refused write has torn if
  // something is in memory to be written out at that moment.
  static void KeepResumable(rocksdb::DB* db);

 private:
  struct State;
  class Listener;

  bool HasRoom(uint64_t needed) const;

  const std::string path_;
  rocksdb::Env* const env_;
  bool left_log_ = false;  // A try to resume has left the torn log. One thread's.
  mutable std::atomic<uint64_t> probes_ = 0;
  const std::shared_ptr<State> state_;  // Shared with the listener, which the database keeps.
};

}  // namespace tacho::storage

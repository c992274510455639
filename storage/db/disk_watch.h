// Notices when RocksDB stops writing because the disk refused, and finds the way back without a
// restart where there is one.
//
// A full disk is such a case: RocksDB holds everything that was acknowledged in memory, and once
// there is room writes it into tables, after which the log with the refused write in it is no
// longer read. The ballast is room for that. A failed write or sync of any other kind is not: what
// the kernel still holds in memory need not be what the disk has, so only opening the database
// again, which reads what is there and syncs it anew, shows what was stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "storage/db/ballast.h"

namespace rocksdb {
class DB;
class Env;
class EventListener;
class Status;
}  // namespace rocksdb

namespace tacho::storage {

class MemoryOverlay;

// Whether the disk takes what is to be stored. Reading goes on in every state.
enum class DiskState {
  kWritable,
  kRefusing,  // It is full, or nearly. Rows are refused with UNAVAILABLE, and upkeep too while it
              // is full; the store tries by itself, and goes on once there is room.
  kFailed,  // Everything is refused until the store is opened again: a write or a sync has failed,
            // and only reading the disk anew shows what it holds.
};

// Thread-safe, but TryResume() is for one thread at a time.
class DiskWatch {
 public:
  // As Ballast::Options; here `env` may be null, which is the real file system.
  explicit DiskWatch(Ballast::Options options);
  ~DiskWatch();

  // For DBOptions::listeners.
  std::shared_ptr<rocksdb::EventListener> listener() const;

  // Call before the database is opened. Whether there is room for what opening writes; gives up the
  // ballast for it. True too if the file system does not say.
  bool MakeRoomToOpen();
  // As ResumeWriting() needs it. Call once, before TryResume().
  void SetRequestFlush(std::function<void()> request_flush) {
    request_flush_ = std::move(request_flush);
  }
  // The database was opened on `overlay`, which is not owned, for this reason. Everything is
  // refused until it has landed and then `on_landed` has succeeded; TryResume() sees to both.
  void OpenedInMemory(MemoryOverlay* overlay, absl::Status why,
                      std::function<absl::Status()> on_landed);
  // It has not landed yet.
  bool is_in_memory() const;

  // What was refused; OK if nothing is amiss.
  absl::Status trouble() const;
  // Writes are refused too, not only work in the background.
  bool blocks_writes() const;
  // A write was refused with this status.
  void Note(const rocksdb::Status& status);
  // Making or dropping a column family failed. If only for lack of room, it may be tried again
  // after TryResume().
  void NoteManifest(const rocksdb::Status& status);
  // RocksDB 7.8 has lost count of its references to column families, because it could not begin a
  // log: closing the database would end the process if it was built with assertions, as Debian's
  // is.
  bool must_stay_open() const;
  // There is room for small changes: ask before making or dropping a column family.
  bool HasSpareRoom() const;

  // The ballast: see there. Rows are taken only while it is held.
  Ballast* ballast() { return &ballast_; }
  const Ballast* ballast() const { return &ballast_; }

  enum class Outcome {
    kResumed,  // Nothing is amiss any more.
    kNotYet,   // The disk is still full.
    kNever,    // The database must be opened again.
  };
  // Gives up the ballast first, if writes are refused.
  Outcome TryResume(rocksdb::DB* db) ABSL_LOCKS_EXCLUDED(log_mutex_);

  // Hold it for KeepResumable() and the write behind it, and look at blocks_writes() first: another
  // write in between could take away what the first one puts into memory, and nobody may write to a
  // log that is about to be left.
  absl::Mutex* log_mutex() ABSL_LOCK_RETURNED(log_mutex_) { return &log_mutex_; }
  // Call before each write to the log: RocksDB can only turn its back on a log that a refused write
  // has torn if something is in memory to be written out at that moment. RocksDB writes out memory
  // at the beginning of a write, which is why this is a write of its own.
  // Does nothing if the log is shipped.
  void KeepResumable(rocksdb::DB* db) const {
    if (!log_is_shipped_) PutMarker(db);
  }
  static void PutMarker(rocksdb::DB* db);
  // Before the first write: the log is read by others, who take a sequence that is not in it for
  // damage. A torn log is then never left behind: TryResume() returns kNever. What the log lacks
  // came to be known nowhere, and what it has is in the bucket, so opening again loses nothing.
  void ShipLog() { log_is_shipped_ = true; }

 private:
  struct State;
  class Listener;

  bool HasRoom(uint64_t needed) const;
  // Puts on the disk what was made in memory. False: not yet.
  bool Land();
  // The log that the database writes to; 0 if it cannot be known.
  static uint64_t CurrentLog(rocksdb::DB* db);

  const std::string path_;
  rocksdb::Env* const env_;
  Ballast ballast_;
  // Set before other threads start.
  std::function<void()> request_flush_;
  MemoryOverlay* overlay_ = nullptr;
  std::function<absl::Status()> on_landed_;  // Null once it has succeeded.
  absl::Mutex log_mutex_;
  bool log_is_shipped_ = false;
  uint64_t torn_log_ = 0;  // Which log is torn; 0: none, or not known. One thread's.
  mutable std::atomic<uint64_t> probes_ = 0;
  const std::shared_ptr<State> state_;  // Shared with the listener, which the database keeps.
};

}  // namespace tacho::storage

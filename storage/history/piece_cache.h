// Pieces of objects of a bucket, kept on the local disk and, the last few, in memory. It knows
// nothing of what is in them.
//
// An object is cut into pieces of kPieceBytes; the last one is shorter. Objects never change, so a
// piece that is here is right for as long as its object exists.
//
// On disk a piece is one file, named after its object and its number:
//
//    0                               4
//    | le32 CRC-32C of the rest      | string object key | varint number | the piece's bytes |
//
// The file is written under another name and then renamed, without a sync. What a crash or a disk
// leaves of it is found out by the checksum, and the piece is fetched again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

using PiecePtr = std::shared_ptr<const std::string>;

// Thread-safe. Of several threads that want one piece, one fetches it and the others wait.
class PieceCache {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

  struct Options {
    std::string path;  // Directory, which is the cache's own; created if missing.
    // Limit of the pieces on the disk; the least recently used leaves first. Zero: nothing is kept
    // on the disk.
    uint64_t max_bytes = uint64_t{10} << 30;
    uint64_t memory_bytes = 16u << 20;  // Of the pieces in memory; at least one run stays.
    rocksdb::Env* env = nullptr;        // Not owned. nullptr is the real file system.
  };
  struct Stats {
    uint64_t hits = 0;    // Pieces that were here,
    uint64_t misses = 0;  // and runs of pieces that had to be fetched.
    uint64_t bytes = 0;   // On the disk.
    // Pieces that could not be kept on the disk, or were damaged there.
    uint64_t disk_errors = 0;
  };

  // Which pieces of an object a reader wants.
  struct Wanted {
    absl::string_view key;
    uint64_t object_bytes = 0;
    uint64_t piece = 0;  // This one is returned,
    uint64_t run = 1;    // and if it has to be fetched, so many from it on, at most, with it.
  };
  // Fetches bytes [offset, offset + bytes) of the object.
  using Fetch = absl::FunctionRef<absl::StatusOr<std::string>(uint64_t offset, uint64_t bytes)>;

  // Finds what an earlier process has left in the directory.
  //   UNAVAILABLE  the directory cannot be made or listed.
  static absl::StatusOr<std::unique_ptr<PieceCache>> Open(Options options);
  PieceCache(const PieceCache&) = delete;
  PieceCache& operator=(const PieceCache&) = delete;

  // The piece; it does not have to be fetched if it is here. A disk that refuses only costs the
  // next reader another fetch.
  //   DATA_LOSS  what was fetched is not as long as the object should be.
  //   others     as `fetch` returned it.
  absl::StatusOr<PiecePtr> Get(const Wanted& wanted, Fetch fetch) ABSL_LOCKS_EXCLUDED(mutex_);

  // Longer runs could push each other out of memory before they are read, where nothing is on the
  // disk.
  uint64_t longest_run() const {
    constexpr uint64_t kRunsInMemory = 4;
    if (options_.max_bytes > 0) return UINT64_MAX;
    return std::max<uint64_t>(1, options_.memory_bytes / kRunsInMemory / kPieceBytes);
  }

  // Forgets an object that is about to be deleted.
  void Forget(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The file's name says which piece it is.
  using Name = std::string;
  struct Kept {
    uint64_t bytes = 0;
    std::list<Name>::iterator used;
  };
  struct InMemory {
    PiecePtr piece;
    std::list<Name>::iterator used;
  };

  explicit PieceCache(Options options);
  absl::Status FindKept();

  static Name NameOf(absl::string_view key, uint64_t piece);
  std::string PathOf(const Name& name) const;

  // Null: it is neither in memory nor, whole, on the disk; then the caller fetches it, and has to
  // call Settle() for each of the pieces from `piece` on that *run says.
  PiecePtr FindOrClaim(const Wanted& wanted, uint64_t* run) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsKnown(const Name& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const Wanted& wanted, uint64_t run) ABSL_LOCKS_EXCLUDED(mutex_);
  PiecePtr ReadKept(const Name& name, const Wanted& wanted) const;
  // Whether it is on the disk now.
  bool WriteKept(const Name& name, absl::string_view key, uint64_t piece,
                 absl::string_view bytes) const;
  void KeepInMemory(const Name& name, const PiecePtr& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const Name& name, absl::string_view key, uint64_t piece, const PiecePtr& bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropKept(const Name& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  rocksdb::Env* const env_;
  mutable absl::Mutex mutex_;
  // Each list has the last used in front.
  std::list<Name> disk_order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Name, Kept> on_disk_ ABSL_GUARDED_BY(mutex_);
  std::list<Name> memory_order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Name, InMemory> in_memory_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Name> on_the_way_ ABSL_GUARDED_BY(mutex_);
  uint64_t memory_used_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage

// The disk of a simulated machine: a PowerCutEnv that can also be full, slow or broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"
#include "tests/support/power_cut_env.h"

namespace tacho::simulate {

// Thread-safe. Must outlive every database opened on it.
class SimDisk : public rocksdb::EnvWrapper {
 public:
  explicit SimDisk(uint64_t seed) : EnvWrapper(&power_), power_(seed) {}
  const char* Name() const override { return "SimDisk"; }

  // The faults from now on. A write in place needs no room, and fails as an append does.
  struct Faults {
    uint64_t capacity = UINT64_MAX;  // Bytes; an append past it is torn and refused with NoSpace.
    int failing_appends = 0;         // So many appends fail with an I/O error, half written.
    bool late = false;               // They are written whole.
    int full_append = 0;             // The n-th append is refused with NoSpace, half written.
    size_t full_size = 0;            // The first append of so many bytes is refused likewise.
    uint64_t kill_after = 0;         // The n-th effect after that is the last; 0: none is.
    int failing_syncs = 0;           // So many syncs, also of directories, fail: an I/O error.
    int lying_syncs = 0;             // So many syncs of logs do nothing, and say that all is well.
    int64_t sync_ns = 200'000;       // What a sync takes.
    int64_t look_ns = 0;             // What it takes to find out how much room is left.
  };
  void Set(const Faults& faults) ABSL_LOCKS_EXCLUDED(mutex_);
  Faults faults() const ABSL_LOCKS_EXCLUDED(mutex_);

  // How many appends and syncs have failed so far, but for a lack of room.
  uint64_t errors() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many writes and syncs it has refused so far, for whatever reason, but for its death.
  uint64_t refusals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a sync has lied since this was asked last.
  bool TakeLies() ABSL_LOCKS_EXCLUDED(mutex_);

  testing::PowerCutEnv* power() { return &power_; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status ReopenWritableFile(const std::string& name,
                                     std::unique_ptr<rocksdb::WritableFile>* file,
                                     const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewRandomRWFile(const std::string& name,
                                  std::unique_ptr<rocksdb::RandomRWFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewDirectory(const std::string& name,
                               std::unique_ptr<rocksdb::Directory>* directory) override;
  rocksdb::Status GetFreeSpace(const std::string& path, uint64_t* bytes) override;

 private:
  class File;
  class InPlace;
  class Folder;

  // What of an append must be written before it fails; nothing if it need not fail.
  std::optional<size_t> TakeAppend(size_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether an append is refused for want of room, though there would be some.
  bool TakeNoRoom(size_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountNoRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits as long as a sync takes, then calls `sync`, unless it is to fail.
  rocksdb::Status SyncWith(const std::function<rocksdb::Status()>& sync)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Lies() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes one of those that are left; false if there is none.
  bool Take(int Faults::*left) ABSL_LOCKS_EXCLUDED(mutex_);

  testing::PowerCutEnv power_;
  mutable absl::Mutex mutex_;
  Faults faults_ ABSL_GUARDED_BY(mutex_);
  uint64_t errors_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t no_room_ ABSL_GUARDED_BY(mutex_) = 0;  // Appends that found none.
  bool has_lied_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::simulate

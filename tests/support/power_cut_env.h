// A file system in memory that loses its power: what was not synced may then be gone.
//
// A file keeps what was in it at its last Sync(); of what was appended since, nothing, a part, all,
// or zeros in its place may be left, and of what was written over, nothing, a part or all. Making,
// renaming and deleting files is durable once their directory was synced; before, either all of it
// has happened or none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"

namespace tacho::testing {

// Thread-safe. Must outlive every database opened on it.
class PowerCutEnv : public rocksdb::EnvWrapper {
 public:
  explicit PowerCutEnv(uint64_t seed);
  ~PowerCutEnv() override;
  const char* Name() const override { return "PowerCutEnv"; }

  // The power goes at the n-th sync (of a file or directory) from now on, just before or just after
  // it takes effect; or at the n-th effect of any kind. From then on everything fails.
  void CutAtSync(uint64_t n, bool after) ABSL_LOCKS_EXCLUDED(mutex_);
  void CutAtOperation(uint64_t n) ABSL_LOCKS_EXCLUDED(mutex_);
  void CutNow() ABSL_LOCKS_EXCLUDED(mutex_);
  bool dead() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Dead, and not only the process.
  bool lost_power() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of all files, synced or not.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Since it was made or started.
  uint64_t syncs() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What the cut did to what was not synced, in words.
  std::string loss() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The process dies and the machine goes on: from now on everything fails, but nothing is lost,
  // and what was not synced still may be at a later cut.
  void Kill() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same at the n-th effect from now on.
  void KillAtOperation(uint64_t n) ABSL_LOCKS_EXCLUDED(mutex_);
  // Power is back, or a new process begins: files are as they were left. All databases must be
  // closed.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes a bit of a file that is wholly synced: a table, a manifest or a log, but none of the
  // newest log's second half. Returns the file's path, or nothing if there is no such file.
  std::string Rot() ABSL_LOCKS_EXCLUDED(mutex_);

  // What a disk holds: the bytes of each file, by path.
  using Files = std::map<std::string, std::string>;
  Files files() const ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on the disk holds exactly these. All databases must be closed.
  void SetFiles(const Files& files) ABSL_LOCKS_EXCLUDED(mutex_);
  // Every disk that a cut at this moment could leave, without one: those that differ, each with its
  // loss(). Where a part of what was not synced is left, the seed says which.
  std::map<std::string, Files> PossibleCuts() ABSL_LOCKS_EXCLUDED(mutex_);
  // Called without a lock just before and just after each sync takes effect, on its thread. Set it
  // while no database is open.
  void OnSync(std::function<void()> look) { look_ = std::move(look); }

  rocksdb::Status NewSequentialFile(const std::string& name,
                                    std::unique_ptr<rocksdb::SequentialFile>* file,
                                    const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                      const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewRandomRWFile(const std::string& name,
                                  std::unique_ptr<rocksdb::RandomRWFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status ReopenWritableFile(const std::string& name,
                                     std::unique_ptr<rocksdb::WritableFile>* file,
                                     const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewDirectory(const std::string& name,
                               std::unique_ptr<rocksdb::Directory>* directory) override;
  rocksdb::Status FileExists(const std::string& name) override;
  rocksdb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* names) override;
  rocksdb::Status GetChildrenFileAttributes(const std::string& directory,
                                            std::vector<FileAttributes>* files) override;
  rocksdb::Status DeleteFile(const std::string& name) override;
  rocksdb::Status CreateDir(const std::string& name) override;
  rocksdb::Status CreateDirIfMissing(const std::string& name) override;
  rocksdb::Status DeleteDir(const std::string& name) override;
  rocksdb::Status GetFileSize(const std::string& name, uint64_t* size) override;
  rocksdb::Status GetFileModificationTime(const std::string& name, uint64_t* time) override;
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override;
  rocksdb::Status LinkFile(const std::string& from, const std::string& to) override;
  rocksdb::Status LockFile(const std::string& name, rocksdb::FileLock** lock) override;
  rocksdb::Status UnlockFile(rocksdb::FileLock* lock) override;
  rocksdb::Status GetAbsolutePath(const std::string& name, std::string* path) override;
  // RocksDB pauses for a second after a failure in the background. Here nothing heals meanwhile.
  void SleepForMicroseconds(int micros) override {
    target()->SleepForMicroseconds(std::min(micros, 1000));
  }

 private:
  struct Inode {
    std::string data;
    size_t synced = 0;
    std::optional<std::string> before;  // At the last sync; none: nothing was written over since.
  };
  using InodePtr = std::shared_ptr<Inode>;
  using Entries = std::map<std::string, InodePtr>;  // By path.
  class Reader;
  class RandomReader;
  class Writer;
  class Overwriter;
  class Folder;
  // What is left of data that was not synced.
  enum class Tail { kNothing, kPart, kAll, kZeros };

  // Counts an effect; false if the power is gone, perhaps just now.
  bool Live() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for a sync, which is `apply`.
  template <typename Apply>
  bool LiveSync(const Apply& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Apply>
  bool SyncWith(const Apply& apply) ABSL_LOCKS_EXCLUDED(mutex_);
  void Cut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndProcess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entries Left(bool entries_reached_disk, Tail tail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Look() const {
    if (look_ != nullptr) look_();
  }
  InodePtr Find(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::function<void()> look_;
  mutable absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  Entries live_ ABSL_GUARDED_BY(mutex_);
  Entries durable_ ABSL_GUARDED_BY(mutex_);  // As of the last sync of each directory.
  Entries left_ ABSL_GUARDED_BY(mutex_);     // By the cut.
  std::string loss_ ABSL_GUARDED_BY(mutex_);
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  bool killed_ ABSL_GUARDED_BY(mutex_) = false;  // Dead, but the machine is not.
  uint64_t syncs_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t operations_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cut_at_sync_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never.
  bool cut_after_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cut_at_operation_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t kill_at_operation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::testing

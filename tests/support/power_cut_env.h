// A file system in memory that loses its power: what was not synced may then be gone.
//
// A file keeps what was in it at its last Sync(); of what was appended since, nothing, a part, all,
// or zeros in its place may be left, and of what was written over, nothing, a part or all. Making,
// renaming and deleting files is durable once their directory was synced; before, either all of it
// has happened or none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
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
  // Since it was made or started.
  uint64_t syncs() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t operations() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What the cut did to what was not synced, in words.
  std::string loss() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Power is back: files are as the cut left them. All databases must be closed.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

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

  // Counts an effect; false if the power is gone, perhaps just now.
  bool Live() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for a sync, which is `apply`.
  template <typename Apply>
  bool LiveSync(const Apply& apply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  InodePtr Find(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  Entries live_ ABSL_GUARDED_BY(mutex_);
  Entries durable_ ABSL_GUARDED_BY(mutex_);  // As of the last sync of each directory.
  Entries left_ ABSL_GUARDED_BY(mutex_);     // By the cut.
  std::string loss_ ABSL_GUARDED_BY(mutex_);
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t syncs_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t operations_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cut_at_sync_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never.
  bool cut_after_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cut_at_operation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::testing

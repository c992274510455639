// A file system with which a database opens although its disk is full: it reads the files of the
// disk, keeps what is written in memory, and leaves the disk as it is. Once there is room, Land()
// puts what is in memory on the disk, and from then on every call goes to the disk.
//
// A crash at any moment leaves a database that can be opened: before CURRENT is replaced it is the
// one that was found, afterwards the one in memory. The caller must not write to the database
// before it has landed, so that the log in memory is empty: a log cannot be replaced together with
// CURRENT.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"

namespace tacho::storage {

// Thread-safe. Must outlive every database opened on it.
class MemoryOverlay : public rocksdb::EnvWrapper {
 public:
  // `disk` is not owned.
  explicit MemoryOverlay(rocksdb::Env* disk);
  ~MemoryOverlay() override;
  const char* Name() const override { return "MemoryOverlay"; }

  // Memory of what is not on the disk.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool landed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Not OK: nothing has changed; try again. Every other call waits meanwhile.
  rocksdb::Status Land() ABSL_LOCKS_EXCLUDED(mutex_);

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                      const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewSequentialFile(const std::string& name,
                                    std::unique_ptr<rocksdb::SequentialFile>* file,
                                    const rocksdb::EnvOptions& options) override;
  rocksdb::Status FileExists(const std::string& name) override;
  rocksdb::Status GetChildren(const std::string& folder, std::vector<std::string>* names) override;
  rocksdb::Status GetFileSize(const std::string& name, uint64_t* size) override;
  rocksdb::Status DeleteFile(const std::string& name) override;
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override;

 private:
  class Writer;
  class Reader;
  class Scanner;
  // A file that was made in memory.
  struct File {
    std::string bytes;                              // Empty once `reader` reads the disk.
    bool open = true;                               // A Writer has it.
    std::unique_ptr<rocksdb::WritableFile> writer;  // On the disk, if still open when it landed.
    std::unique_ptr<rocksdb::RandomAccessFile> reader;  // On the disk.
  };
  using FilePtr = std::shared_ptr<File>;

  FilePtr Find(const std::string& name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsHidden(const std::string& name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !landed_ && hidden_.contains(name);
  }
  // Writes one file to the disk, under `name`, and syncs it; keeps it open if a Writer has it.
  rocksdb::Status Copy(const std::string& name, File* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rocksdb::Status CopyAll(std::vector<std::string>* copied) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rocksdb::Status SyncFolder(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;  // Shared to read bytes of files.
  bool landed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, FilePtr> files_ ABSL_GUARDED_BY(mutex_);  // By name.
  std::set<std::string> hidden_ ABSL_GUARDED_BY(mutex_);  // On the disk, but deleted or replaced.
};

}  // namespace tacho::storage

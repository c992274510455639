// A file system in memory that holds a number of bytes. Beyond that, an append stores what fits and
// fails as on a full disk. Deleting a file gives its room back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"

namespace tacho::storage {

// Thread-safe. Must outlive every database opened on it.
class CapacityEnv : public rocksdb::EnvWrapper {
 public:
  explicit CapacityEnv(uint64_t capacity)
      : EnvWrapper(rocksdb::NewMemEnv(rocksdb::Env::Default())),
        memory_(target()),
        capacity_(capacity) {}
  const char* Name() const override { return "CapacityEnv"; }

  // May be less than what is used: then nothing can be written.
  void SetCapacity(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    capacity_ = bytes;
  }
  uint64_t used() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return used_;
  }
  // How often there was no room.
  int refusals() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return refusals_;
  }
  // The next file whose name contains `match` cannot be made for lack of room.
  void RefuseNext(std::string match) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    refused_next_ = std::move(match);
  }
  // Free space is not known any more, or is again.
  void HideFreeSpace(bool hide) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    hides_free_space_ = hide;
  }
  // Calls `hook` before each change, with "new", "append", "rename" or "delete"; null calls
  // nothing. Not to be called from a hook.
  using Hook = std::function<void(const std::string& what, const std::string& name)>;
  void OnChange(Hook hook) ABSL_LOCKS_EXCLUDED(hook_mutex_) {
    absl::WriterMutexLock lock(&hook_mutex_);
    on_change_ = std::move(hook);
  }
  // What a crash of the process at this moment would leave, without a bound. Nothing changes while
  // it is made; it may be made in a hook.
  std::unique_ptr<CapacityEnv> Copy(const std::string& folder)
      ABSL_LOCKS_EXCLUDED(change_mutex_, mutex_) {
    absl::WriterMutexLock lock(&change_mutex_);
    auto copy = std::make_unique<CapacityEnv>(UINT64_MAX);
    std::vector<std::string> names;
    GetChildren(folder, &names).PermitUncheckedError();
    copy->CreateDirIfMissing(folder).PermitUncheckedError();
    for (const std::string& name : names) {
      if (name == "LOCK" || name == "." || name == "..") continue;
      const std::string path = absl::StrCat(folder, "/", name);
      std::string bytes;
      if (!rocksdb::ReadFileToString(this, path, &bytes).ok()) continue;
      rocksdb::WriteStringToFile(copy.get(), bytes, path).PermitUncheckedError();
    }
    return copy;
  }

  rocksdb::Status GetFreeSpace(const std::string& /*path*/, uint64_t* bytes) override {
    absl::MutexLock lock(&mutex_);
    if (hides_free_space_) return rocksdb::Status::NotSupported("free space");
    *bytes = capacity_ - std::min(capacity_, used_);
    return rocksdb::Status::OK();
  }
  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    Call("new", name);
    {
      absl::MutexLock lock(&mutex_);
      if (!refused_next_.empty() && absl::StrContains(name, refused_next_)) {
        refused_next_.clear();
        ++refusals_;
        return rocksdb::Status::NoSpace(name);
      }
    }
    absl::ReaderMutexLock change(&change_mutex_);
    std::unique_ptr<rocksdb::WritableFile> real;
    rocksdb::Status status = target()->NewWritableFile(name, &real, options);
    if (!status.ok()) return status;
    Resize(name, 0);
    *file = std::make_unique<File>(name, std::move(real), this);
    return status;
  }
  rocksdb::Status DeleteFile(const std::string& name) override {
    Call("delete", name);
    absl::ReaderMutexLock change(&change_mutex_);
    rocksdb::Status status = target()->DeleteFile(name);
    if (status.ok()) Resize(name, 0);
    return status;
  }
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override {
    Call("rename", to);
    absl::ReaderMutexLock change(&change_mutex_);
    rocksdb::Status status = target()->RenameFile(from, to);
    if (!status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    const uint64_t size = std::exchange(sizes_[from], 0);
    used_ -= std::exchange(sizes_[to], size);
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::string name, std::unique_ptr<rocksdb::WritableFile> real, CapacityEnv* env)
        : WritableFileWrapper(real.get()),
          name_(std::move(name)),
          real_(std::move(real)),
          env_(env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      env_->Call("append", name_);
      absl::ReaderMutexLock change(&env_->change_mutex_);
      const uint64_t fits = env_->Take(name_, data.size());
      rocksdb::Status status = real_->Append({data.data(), fits});
      if (!status.ok() || fits == data.size()) return status;
      return rocksdb::Status::NoSpace(name_);
    }

   private:
    const std::string name_;
    const std::unique_ptr<rocksdb::WritableFile> real_;
    CapacityEnv* const env_;
  };

  void Call(const std::string& what, const std::string& name) const
      ABSL_LOCKS_EXCLUDED(hook_mutex_) {
    absl::ReaderMutexLock lock(&hook_mutex_);
    if (on_change_ != nullptr) on_change_(what, name);
  }

  uint64_t Take(const std::string& name, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const uint64_t fits = std::min(bytes, capacity_ - std::min(capacity_, used_));
    if (fits < bytes) ++refusals_;
    sizes_[name] += fits;
    used_ += fits;
    return fits;
  }
  void Resize(const std::string& name, uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    used_ -= std::exchange(sizes_[name], size);
    used_ += size;
  }

  const std::unique_ptr<rocksdb::Env> memory_;
  mutable absl::Mutex hook_mutex_;
  Hook on_change_ ABSL_GUARDED_BY(hook_mutex_);
  absl::Mutex change_mutex_;  // For writing while a copy is made. Before mutex_.
  mutable absl::Mutex mutex_;
  uint64_t capacity_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> sizes_ ABSL_GUARDED_BY(mutex_);  // By name.
  std::string refused_next_ ABSL_GUARDED_BY(mutex_);
  bool hides_free_space_ ABSL_GUARDED_BY(mutex_) = false;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::storage
